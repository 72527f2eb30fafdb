//! What the macro was written above, and whether it can be derived for that.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DataEnum, DeriveInput, Error, Fields, GenericParam, Generics, Ident, LitInt,
    Result, Variant,
};

/// Which trait is derived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `longshore::Key`.
    Key,
    /// `longshore::Value`.
    Value,
}

/// A struct or an enum that can be encoded.
pub struct Shape<'a> {
    pub name: &'a Ident,
    pub generics: &'a Generics,
    pub body: Body<'a>,
}

pub enum Body<'a> {
    Struct(&'a Fields),
    Enum(Vec<Tagged<'a>>),
}

/// A variant with its tag.
pub struct Tagged<'a> {
    pub tag: u8,
    pub name: &'a Ident,
    pub fields: &'a Fields,
}

impl<'a> Shape<'a> {
    /// Reads what was written.
    ///
    /// # Errors
    /// What cannot be derived, at its place.
    pub fn of(input: &'a DeriveInput, target: Target) -> Result<Shape<'a>> {
        refuse_lifetimes(&input.generics)?;
        refuse_tags(&input.attrs)?;
        let body = match &input.data {
            Data::Struct(data) => {
                refuse_field_tags(&data.fields)?;
                Body::Struct(&data.fields)
            }
            Data::Enum(data) => Body::Enum(variants(&input.ident, data, target)?),
            Data::Union(_) => {
                let message =
                    "a union does not know what it holds; derive this for a struct or an enum";
                return Err(Error::new(input.ident.span(), message));
            }
        };
        Ok(Shape {
            name: &input.ident,
            generics: &input.generics,
            body,
        })
    }
}

fn variants<'a>(name: &Ident, data: &'a DataEnum, target: Target) -> Result<Vec<Tagged<'a>>> {
    if data.variants.is_empty() {
        let message = "an enum without variants has nothing that could be stored";
        return Err(Error::new(name.span(), message));
    }
    let mut tagged: Vec<Tagged<'a>> = Vec::new();
    for variant in &data.variants {
        refuse_field_tags(&variant.fields)?;
        if target == Target::Key {
            refuse_discriminant(variant)?;
        }
        let next = tagged.last().map_or(0, |last| u64::from(last.tag) + 1);
        let (tag, span) = match given_tag(&variant.attrs)? {
            Some(given) => (given.base10_parse()?, given.span()),
            None => (next, variant.ident.span()),
        };
        let tag = u8::try_from(tag)
            .map_err(|_| Error::new(span, "a tag is a number from 0 to 255; none is left here"))?;
        if target == Target::Key && u64::from(tag) < next {
            let message = "the tags of a key ascend in the order of the variants, so that keys keep the order of \
                           `derive(Ord)`";
            return Err(Error::new(span, message));
        }
        if let Some(other) = tagged.iter().find(|other| other.tag == tag) {
            let message = format!(
                "tag {tag} is that of `{}` already; each variant has its own",
                other.name
            );
            return Err(Error::new(span, message));
        }
        tagged.push(Tagged {
            tag,
            name: &variant.ident,
            fields: &variant.fields,
        });
    }
    Ok(tagged)
}

/// What `#[longshore(tag = 7)]` says.
fn given_tag(attributes: &[Attribute]) -> Result<Option<LitInt>> {
    let mut given = None;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("longshore")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("tag") {
                let message =
                    "this is not known; write `#[longshore(tag = 7)]` to choose a variant's tag";
                return Err(Error::new(meta.path.span(), message));
            }
            given = Some(meta.value()?.parse::<LitInt>()?);
            Ok(())
        })?;
    }
    Ok(given)
}

fn refuse_tags(attributes: &[Attribute]) -> Result<()> {
    match attributes.iter().find(|a| a.path().is_ident("longshore")) {
        Some(attribute) => {
            let message = "`#[longshore(tag = 7)]` belongs to a variant of an enum";
            Err(Error::new(attribute.span(), message))
        }
        None => Ok(()),
    }
}

fn refuse_field_tags(fields: &Fields) -> Result<()> {
    fields
        .iter()
        .try_for_each(|field| refuse_tags(&field.attrs))
}

fn refuse_discriminant(variant: &Variant) -> Result<()> {
    let Some((_, discriminant)) = &variant.discriminant else {
        return Ok(());
    };
    let number = quote::quote!(#discriminant);
    let message = format!(
        "discriminants are not stored, but change the order of `derive(Ord)`; write `#[longshore(tag = {number})]` \
         above the variant instead"
    );
    Err(Error::new(discriminant.span(), message))
}

fn refuse_lifetimes(generics: &Generics) -> Result<()> {
    let lifetime = generics.params.iter().find_map(|param| match param {
        GenericParam::Lifetime(lifetime) => Some(lifetime.span()),
        GenericParam::Type(_) | GenericParam::Const(_) => None,
    });
    let refused = |span: Span| {
        let message =
            "what is read back owns its parts: write `String` for `&str`, `Vec<u8>` for `&[u8]`";
        Err(Error::new(span, message))
    };
    lifetime.map_or(Ok(()), refused)
}
