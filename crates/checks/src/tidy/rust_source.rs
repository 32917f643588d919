//! A Rust file as rules read it: parsed by `syn`, and as tokens where a macro hides items from the parser.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Expr, Token};

const KEYWORDS: [&str; 6] = ["mod", "struct", "enum", "trait", "fn", "type"];

/// A module, type, trait or function, with the place where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedItem {
    pub(crate) keyword: String,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// A function under `#[test]` or `#[tokio::test]`.
    pub(crate) is_test: bool,
}

#[derive(Default)]
pub(crate) struct RustSource {
    items: Vec<NamedItem>,
    file: Option<syn::File>,
}

impl RustSource {
    /// Text that is not Rust has no items; the compiler reports it.
    pub(crate) fn parse(text: &str) -> Self {
        let mut items = vec![];
        if let Ok(tokens) = text.parse() {
            collect(tokens, &mut items);
        }
        Self { items, file: syn::parse_file(text).ok() }
    }

    pub(crate) fn items(&self) -> &[NamedItem] {
        &self.items
    }

    pub(crate) fn file(&self) -> Option<&syn::File> {
        self.file.as_ref()
    }
}

/// Reads tokens instead of syntax: what is inside a macro call need not parse.
fn collect(tokens: TokenStream, items: &mut Vec<NamedItem>) {
    let (mut keyword, mut is_test, mut is_after_hash) = (None::<Ident>, false, false);
    for tree in tokens {
        let before = keyword.take();
        let is_attribute = std::mem::take(&mut is_after_hash);
        match tree {
            TokenTree::Ident(name) => match before {
                Some(keyword) => items.push(NamedItem {
                    is_test: is_test && keyword == "fn",
                    keyword: keyword.to_string(),
                    name: name.to_string(),
                    line: keyword.span().start().line,
                }),
                None => keyword = KEYWORDS.iter().any(|it| name == it).then_some(name),
            },
            TokenTree::Group(group) => {
                if is_attribute && group.delimiter() == Delimiter::Bracket {
                    let attribute = group.stream().to_string().replace(' ', "");
                    is_test |= attribute == "test" || attribute.starts_with("tokio::test");
                } else {
                    is_test &= group.delimiter() != Delimiter::Brace;
                    collect(group.stream(), items);
                }
            }
            TokenTree::Punct(punct) => {
                is_after_hash = punct.as_char() == '#';
                is_test &= punct.as_char() != ';';
            }
            TokenTree::Literal(_) => {}
        }
    }
}

/// The items in a macro call.
pub(crate) fn items_in(call: &syn::Macro) -> Vec<NamedItem> {
    let mut items = vec![];
    collect(call.tokens.clone(), &mut items);
    items
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|it| it.path().is_ident("cfg")).any(|it| {
        let condition = it.meta.require_list().map(|list| list.tokens.to_string().replace(' ', ""));
        condition.is_ok_and(|it| it == "test" || it.starts_with("all(test"))
    })
}

/// Visits the expressions that a macro such as `assert_eq!` is called with.
pub(crate) fn visit_arguments<V: for<'a> Visit<'a>>(visitor: &mut V, call: &syn::Macro) {
    let arguments = syn::punctuated::Punctuated::<Expr, Token![,]>::parse_terminated;
    for argument in call.parse_body_with(arguments).into_iter().flatten() {
        visitor.visit_expr(&argument);
    }
}

#[cfg(test)]
mod tests {
    use super::RustSource;

    #[test]
    fn items_are_found_and_function_pointers_and_macro_variables_are_none() {
        let text = "pub(crate) mod a;\nstruct B;\nenum C {}\ntrait D {\n type E;\n async fn f();\n}\n\
                    const X: fn(u8) = y; macro_rules! g { () => { fn $h() {} } }";
        let source = RustSource::parse(text);
        let names: Vec<_> =
            source.items().iter().map(|it| (it.keyword.as_str(), it.name.as_str(), it.line)).collect();
        let expected = [("mod", "a", 1), ("struct", "B", 2), ("enum", "C", 3), ("trait", "D", 4)];
        assert_eq!(names, [&expected[..], &[("type", "E", 5), ("fn", "f", 6)]].concat());
    }

    #[test]
    fn a_test_is_a_function_under_its_attribute_also_inside_a_macro() {
        let source = RustSource::parse(
            "#[test]\nfn a() { fn inner() {} }\nfn b() {}\n#[cfg(test)]\nfn c() {}\n\
             #[tokio::test(start_paused = true)]\nasync fn d() {}\n#[test]\n#[ignore]\nfn e() {}\n\
             proptest! {\n    #![proptest_config(x)]\n    #[test]\n    fn f(x in 0..9) {}\n}\n\
             macro_rules! g { () => { #[test] fn $g() {} } }\nfn h() {}",
        );
        let tests: Vec<_> =
            source.items().iter().filter(|it| it.is_test).map(|it| it.name.as_str()).collect();
        assert_eq!(tests, ["a", "d", "e", "f"]);
    }
}
