//! Derives `longshore::Key` and `longshore::Value`; see the documentation of the two traits.

#![forbid(unsafe_code)]

mod expand;
mod shape;

use proc_macro::TokenStream;
use shape::{Shape, Target};

/// Derives `longshore::Key`: the fields one after the other, the variants of an enum by their tags.
///
/// The order is that of `#[derive(PartialOrd, Ord)]`. A variant's tag is its number from 0 on, or the one
/// given by `#[longshore(tag = 7)]`.
#[proc_macro_derive(Key, attributes(longshore))]
pub fn key(input: TokenStream) -> TokenStream {
    derive(input.into(), Target::Key).into()
}

/// Derives `longshore::Value`: the fields one after the other, the variants of an enum by their tags.
///
/// A variant's tag is its number from 0 on, or the one given by `#[longshore(tag = 7)]`.
#[proc_macro_derive(Value, attributes(longshore))]
pub fn value(input: TokenStream) -> TokenStream {
    derive(input.into(), Target::Value).into()
}

fn derive(input: proc_macro2::TokenStream, target: Target) -> proc_macro2::TokenStream {
    let expanded = syn::parse2(input)
        .and_then(|input| Shape::of(&input, target).map(|shape| expand::expand(&shape, target)));
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(target: Target, text: &str) -> String {
        let input = syn::parse_str(text).expect("the test's own text is an item");
        match Shape::of(&input, target) {
            Ok(_) => panic!("{text} was not refused"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn refusals_say_what_to_write_instead() {
        let cases = [
            (Target::Key, "union U { a: u8 }", "a union"),
            (Target::Value, "enum Never {}", "without variants"),
            (
                Target::Key,
                "struct K<'a> { name: &'a str }",
                "`String` for `&str`",
            ),
            (
                Target::Key,
                "enum E { A = 3, B }",
                "write `#[longshore(tag = 3)]`",
            ),
            (
                Target::Key,
                "enum E { #[longshore(tag = 3)] A, #[longshore(tag = 1)] B }",
                "the tags of a key ascend",
            ),
            (
                Target::Value,
                "enum E { #[longshore(tag = 1)] A, #[longshore(tag = 1)] B }",
                "tag 1 is that of `A` already",
            ),
            (
                Target::Value,
                "enum E { #[longshore(tag = 256)] A }",
                "a tag is a number from 0 to 255",
            ),
            (
                Target::Value,
                "enum E { #[longshore(tag = 255)] A, B }",
                "a tag is a number from 0 to 255",
            ),
            (
                Target::Value,
                "enum E { #[longshore(name = 1)] A }",
                "write `#[longshore(tag = 7)]`",
            ),
            (
                Target::Value,
                "#[longshore(tag = 1)] struct S;",
                "belongs to a variant",
            ),
            (
                Target::Value,
                "struct S { #[longshore(tag = 1)] a: u8 }",
                "belongs to a variant",
            ),
        ];
        for (target, text, words) in cases {
            let message = refusal(target, text);
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn discriminants_of_values_are_ignored() {
        let input = syn::parse_str("enum E { A = 3, B = 1 }").unwrap();
        assert!(Shape::of(&input, Target::Value).is_ok());
    }
}
