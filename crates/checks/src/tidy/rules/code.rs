//! Rules about Rust code: ids have types, matches name every variant, functions fit on a screen.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, Pat, Stmt, Type};

use crate::tidy::rust_source::{is_for_tests, visit_arguments};
use crate::tidy::{SourceTree, TextFile, TidyViolation};

const IDS: [&str; 5] = ["step", "item", "command", "attempt", "start"];

/// What names a step, an item, a command or an attempt in an event has the type of that, not a number:
/// numbers can be swapped unnoticed, and an event is stored for good.
pub(crate) fn bare_ids(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| !file.is_test());
    let files = files.filter(|file| file.path().starts_with("crates/engine/src/event/"));
    files.flat_map(|file| findings(file, BareIds(vec![]), |it| it.0)).collect()
}

struct BareIds(Vec<(usize, String)>);

impl<'a> Visit<'a> for BareIds {
    fn visit_field(&mut self, field: &'a syn::Field) {
        if let Some(name) = &field.ident {
            self.look(name, &field.ty);
        }
        visit::visit_field(self, field);
    }

    fn visit_pat_type(&mut self, argument: &'a syn::PatType) {
        if let Pat::Ident(pattern) = &*argument.pat {
            self.look(&pattern.ident, &argument.ty);
        }
        visit::visit_pat_type(self, argument);
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        self.look_in(item.mac.tokens.clone());
    }
}

impl BareIds {
    /// Reads `name: Type` in tokens: the fields of types that a macro declares.
    fn look_in(&mut self, tokens: TokenStream) {
        let is = |token: &TokenTree, ends: &[char]| matches!(token, TokenTree::Punct(punct) if ends.contains(&punct.as_char()));
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.look_in(group.stream()),
                TokenTree::Ident(name) if tokens.get(at + 1).is_some_and(|it| is(it, &[':'])) => {
                    let kind = tokens.iter().skip(at + 2).take_while(|it| !is(it, &[',', '=']));
                    if let Ok(kind) = syn::parse2(kind.cloned().collect()) {
                        self.look(name, &kind);
                    }
                }
                _ => {}
            }
        }
    }

    fn look(&mut self, name: &syn::Ident, kind: &Type) {
        let Some(number) = number(kind).filter(|_| IDS.iter().any(|id| name == id)) else {
            return;
        };
        let what = format!("`{name}` is a `{number}`: give it the type of what it names");
        self.0.push((name.span().start().line, what));
    }
}

fn number(kind: &Type) -> Option<String> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last()?;
    if let syn::PathArguments::AngleBracketed(inside) = &last.arguments
        && last.ident == "Option"
        && let Some(syn::GenericArgument::Type(inside)) = inside.args.first()
    {
        return number(inside);
    }
    let name = last.ident.to_string();
    ["u32", "u64", "usize"].contains(&name.as_str()).then_some(name)
}

const WORDS: [&str; 11] =
    ["Action", "Ask", "Effect", "Event", "Fact", "Fate", "Input", "Message", "Post", "Report", "Stage"];

/// A match over our own events, effects, inputs, messages or stages names every variant, so that the
/// compiler lists the places that a new one reaches. A match is one of ours if an arm names an enum of the
/// product whose name ends in one of `WORDS`.
pub(crate) fn catch_alls(tree: &SourceTree) -> Vec<TidyViolation> {
    let files: Vec<_> = tree.texts().iter().filter(|file| file.is_product()).collect();
    let items = files.iter().flat_map(|file| file.rust().items());
    let enums = items.filter(|it| it.keyword == "enum").map(|it| it.name.as_str());
    let ours: BTreeSet<&str> = enums.filter(|name| WORDS.iter().any(|word| name.ends_with(word))).collect();
    let found = files.into_iter().flat_map(|file| {
        findings(file, CatchAlls { enums: &ours, implemented: String::new(), found: vec![] }, |it| it.found)
    });
    found.collect()
}

struct CatchAlls<'a> {
    enums: &'a BTreeSet<&'a str>,
    /// The type whose `impl` is being visited, which `Self` stands for.
    implemented: String,
    found: Vec<(usize, String)>,
}

impl<'a> Visit<'a> for CatchAlls<'_> {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        if let Type::Path(path) = &*block.self_ty
            && let Some(last) = path.path.segments.last()
        {
            self.implemented = last.ident.to_string();
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        visit_arguments(self, call);
    }

    fn visit_expr_match(&mut self, found: &'a syn::ExprMatch) {
        if let Some((line, rest)) = found.arms.iter().find_map(|arm| catch_all(&arm.pat)) {
            let mut named = NamedTypes(vec![]);
            found.arms.iter().for_each(|arm| named.visit_pat(&arm.pat));
            let mut named = named.0.iter().map(|name| match name.as_str() {
                "Self" => self.implemented.as_str(),
                name => name,
            });
            if let Some(ours) = named.find(|name| self.enums.contains(name)) {
                let what = format!(
                    "`{rest} =>` takes what is left of `{ours}`: name every variant, so that the compiler \
                     lists this place for a new one"
                );
                self.found.push((line, what));
            }
        }
        visit::visit_expr_match(self, found);
    }
}

/// The line and the text of a pattern that matches whatever the other arms leave.
fn catch_all(pattern: &Pat) -> Option<(usize, String)> {
    match pattern {
        Pat::Wild(wild) => Some((wild.underscore_token.spans[0].start().line, "_".to_owned())),
        Pat::Ident(name) if name.subpat.is_none() => {
            let text = name.ident.to_string();
            // A constant is written in capitals.
            text.starts_with(char::is_lowercase).then(|| (name.ident.span().start().line, text))
        }
        _ => None,
    }
}

struct NamedTypes(Vec<String>);

impl<'a> Visit<'a> for NamedTypes {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.extend(path.segments.iter().rev().nth(1).map(|of| of.ident.to_string()));
    }
}

const LONGEST: usize = 70;

/// A function has at most 70 lines, counted from `fn` to its closing brace. One that is a single match
/// without a catch-all may be longer: it would be split only to fit. So may tests.
pub(crate) fn long_functions(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| file.is_rust() && !file.is_test());
    files.flat_map(|file| findings(file, LongFunctions(vec![]), |it| it.0)).collect()
}

struct LongFunctions(Vec<(usize, String)>);

impl<'a> Visit<'a> for LongFunctions {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.measure(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

impl LongFunctions {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let is_one_match = match body.stmts.as_slice() {
            [Stmt::Expr(Expr::Match(found), _)] => found.arms.iter().all(|it| catch_all(&it.pat).is_none()),
            _ => false,
        };
        let first = signature.fn_token.span.start().line;
        let lines = body.brace_token.span.close().end().line.saturating_sub(first) + 1;
        if lines > LONGEST && !is_one_match {
            let name = &signature.ident;
            let what = format!(
                "`{name}` has {lines} lines, at most {LONGEST} are allowed: it does not fit on a screen"
            );
            self.0.push((first, what));
        }
    }
}

fn findings<V: for<'a> Visit<'a>>(
    file: &TextFile,
    mut visitor: V,
    found: fn(V) -> Vec<(usize, String)>,
) -> Vec<TidyViolation> {
    if let Some(source) = file.rust().file() {
        visitor.visit_file(source);
    }
    found(visitor).into_iter().map(|(line, what)| file.violation(line, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::check;

    #[test]
    fn a_number_that_names_something_has_its_type() {
        let found = |text: &str| check(bare_ids, [("crates/engine/src/event/a.rs", text)]);
        assert_eq!(
            found("struct A {\n    pub step: u32,\n}"),
            ["crates/engine/src/event/a.rs:2: `step` is a `u32`: give it the type of what it names"]
        );
        assert_eq!(found("fn a(item: Option<u64>) {}").len(), 1);
        let declared =
            "stored! { enum A { B { step: u32 = 0, item: Option<u64> = 1, start: StartId = 2 } = 3, } }";
        assert_eq!(found(declared).len(), 2);
        let fine = "struct A { step: StepId, next_start: u64, items: u32, restart: u32 }\nuse step::u32;";
        assert_eq!(found(fine), [""; 0]);
        assert_eq!(check(bare_ids, [("crates/engine/src/job/a.rs", "struct A { step: u32 }")]), [""; 0]);
    }

    /// The enums that the texts below match over.
    const ENUMS: &str = "enum Event {}\nenum JobEvent {}\nenum Effect {}\nenum Input {}\nenum Phase {}\n";

    fn catches(path: &str, text: &str) -> Vec<String> {
        let text = format!("fn f() {{\n{text}\n}}");
        check(catch_alls, [(path, &text), ("crates/engine/src/b.rs", ENUMS)])
    }

    #[test]
    fn a_catch_all_over_an_enum_of_ours_is_found() {
        let expected = "crates/engine/src/a.rs:4: `_ =>` takes what is left of `JobEvent`: name every variant, \
                        so that the compiler lists this place for a new one";
        let found = |text: &str| catches("crates/engine/src/a.rs", text);
        let text = "match event {\n    Event::Job(JobEvent::Paused) => 1,\n    _ => 2,\n}";
        assert_eq!(found(&text.replace("Event::Job(JobEvent::Paused)", "JobEvent::Paused")), [expected]);
        for text in [
            text,
            &text.replace("_ =>", "other =>"),
            "assert_eq!(match input { Input::A => 1, _ => 2 }, 3);",
            "match a { B => match input { Input::C => 1, _ => 2 }, E => {} }",
            "impl Effect {\nfn f(self) { match self { Self::A => 1, _ => 2 } }\n}",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_match_that_names_every_variant_and_one_in_a_test_are_fine() {
        for text in [
            "match event { Event::Job(_) | Event::Step(_) => 1, Event::Item(_) => 2 }",
            "match input { Input::A { b: _ } => 1, Input::C if x => 2, _ if x => 3, Input::C => 4 }",
            "match a { SomeEvent::B => 1, _ => 2 }",
            "impl Phase { fn f(self) { match self { Self::A => 1, _ => 2 } } }",
            "#[cfg(test)]\nmod tests { fn a() { match event { Event::Job(_) => 1, _ => 2 } } }",
        ] {
            assert_eq!(catches("crates/engine/src/a.rs", text), [""; 0], "{text}");
        }
        for path in ["crates/checks/src/a.rs", "crates/engine/tests/a.rs"] {
            assert_eq!(catches(path, "match event { Event::Job(_) => 1, _ => 2 }"), [""; 0]);
        }
    }

    fn function(lines: usize) -> String {
        format!("fn long(\n) {{\n{}}}\n", "    // \"}\n".repeat(lines - 3))
    }

    #[test]
    fn seventy_lines_are_allowed_and_one_more_is_not() {
        assert_eq!(check(long_functions, [("a.rs", &function(70))]), [""; 0]);
        assert_eq!(
            check(long_functions, [("a.rs", &format!("\n{}", function(71)))]),
            ["a.rs:2: `long` has 71 lines, at most 70 are allowed: it does not fit on a screen"]
        );
        let method = format!("impl A {{\n    fn short() {{}}\n{}}}\n", function(80));
        let after_tests = format!("#[cfg(test)]\nmod tests {{\n}}\n{}", function(80));
        for text in [method, after_tests] {
            assert_eq!(check(long_functions, [("a.rs", &text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_match_that_names_everything_and_a_test_may_be_longer() {
        let arms = "        A::B { c, .. } => {}\n".repeat(80);
        let whole = format!("fn f(a: A) -> B {{\n    match a {{\n{arms}    }}\n}}\n");
        assert_eq!(check(long_functions, [("a.rs", &whole)]), [""; 0]);
        let rest = whole.replacen("A::B { c, .. }", "_", 1);
        let more = whole.replace("    match", "    b();\n    match");
        for text in [rest, more] {
            assert_eq!(check(long_functions, [("a.rs", &text)]).len(), 1);
        }
        let inside = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(80));
        assert_eq!(check(long_functions, [("a.rs", &inside), ("tests/b.rs", &function(80))]), [""; 0]);
    }
}
