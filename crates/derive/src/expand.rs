//! The code made of a shape: each part is encoded and decoded by its own implementation.

use crate::shape::{Body, Shape, Tagged, Target};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Field, Fields, Generics, Ident, Member, parse_quote};

/// Most fields that a prefix of a key may have.
const PREFIX_MAX: usize = 8;

/// The implementation of `target` for the shape.
pub fn expand(shape: &Shape<'_>, target: Target) -> TokenStream {
    let path = match target {
        Target::Key => quote!(::longshore::Key),
        Target::Value => quote!(::longshore::Value),
    };
    let name = shape.name;
    let generics = bounded(shape.generics, &path);
    let (own, types, bounds) = generics.split_for_impl();
    let (encode, decode) = match &shape.body {
        Body::Struct(fields) => struct_code(name, fields, &path),
        Body::Enum(variants) => enum_code(name, variants, &path),
    };
    let prefixes = match (&shape.body, target) {
        (Body::Struct(fields), Target::Key) if shape.generics.params.is_empty() => {
            prefixes(name, fields)
        }
        _ => TokenStream::new(),
    };
    quote! {
        #[automatically_derived]
        impl #own #path for #name #types #bounds {
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                #encode
            }

            fn decode(
                bytes: &mut &[u8],
            ) -> ::std::result::Result<Self, ::longshore::DecodeError> {
                #decode
            }
        }
        #prefixes
    }
}

/// The generics, each type with the bound that it can be encoded.
fn bounded(generics: &Generics, path: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for param in generics.type_params_mut() {
        param.bounds.push(parse_quote!(#path));
    }
    generics
}

fn struct_code(name: &Ident, fields: &Fields, path: &TokenStream) -> (TokenStream, TokenStream) {
    let text = name.to_string();
    let encode = members(fields).map(|(member, field)| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> <#ty as #path>::encode(&self.#member, out);)
    });
    let decode = decode_fields(&text, fields, path);
    (
        quote!(let _ = &out; #(#encode)*),
        quote!(let _ = &bytes; ::std::result::Result::Ok(#name { #decode })),
    )
}

fn enum_code(
    name: &Ident,
    variants: &[Tagged<'_>],
    path: &TokenStream,
) -> (TokenStream, TokenStream) {
    let text = name.to_string();
    let encode = variants.iter().map(|variant| {
        let (own, tag) = (variant.name, variant.tag);
        let bindings: Vec<Ident> = (0..variant.fields.len())
            .map(|at| format_ident!("part_{at}"))
            .collect();
        let names = members(variant.fields).map(|(member, _)| member);
        let parts = variant
            .fields
            .iter()
            .zip(&bindings)
            .map(|(field, binding)| {
                let ty = &field.ty;
                quote_spanned!(ty.span()=> <#ty as #path>::encode(#binding, out);)
            });
        quote! {
            #name::#own { #(#names: #bindings),* } => {
                out.push(#tag);
                #(#parts)*
            }
        }
    });
    let decode = variants.iter().map(|variant| {
        let (own, tag) = (variant.name, variant.tag);
        let fields = decode_fields(&format!("{text}::{own}"), variant.fields, path);
        quote!(#tag => ::std::result::Result::Ok(#name::#own { #fields }),)
    });
    (
        quote!(match self { #(#encode)* }),
        quote! {
            match ::longshore::derived::take_tag(bytes, #text)? {
                #(#decode)*
                tag => ::std::result::Result::Err(::longshore::derived::no_variant(#text, tag)),
            }
        },
    )
}

fn decode_fields(place: &str, fields: &Fields, path: &TokenStream) -> TokenStream {
    let parts = members(fields).map(|(member, field)| {
        let ty = &field.ty;
        let place = match &member {
            Member::Named(name) => format!("{place}.{name}"),
            Member::Unnamed(index) => format!("{place}.{}", index.index),
        };
        quote_spanned! {ty.span()=>
            #member: <#ty as #path>::decode(bytes).map_err(|error| error.within(#place))?,
        }
    });
    quote!(#(#parts)*)
}

/// Lets the first fields stand for what the keys begin with.
fn prefixes(name: &Ident, fields: &Fields) -> TokenStream {
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let most = types.len().min(PREFIX_MAX + 1);
    let leading = (1..most).map(|count| {
        let first = &types[..count];
        quote! {
            #[automatically_derived]
            impl ::longshore::AsPrefix<#name> for (#(#first,)*) {
                fn encode_prefix(&self, out: &mut ::std::vec::Vec<u8>) {
                    ::longshore::Key::encode(self, out);
                }
            }
        }
    });
    quote!(#(#leading)*)
}

/// The fields with what they are called by.
fn members(fields: &Fields) -> impl Iterator<Item = (Member, &Field)> {
    fields.members().zip(fields)
}
