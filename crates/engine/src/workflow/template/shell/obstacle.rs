//! Why a reference may not stand where it stands.
//!
//! Some places would run what a value holds, some have no way to quote a value, and after some texts
//! shells disagree about what is quoted. The messages are here; the lexer finds the places.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Arithmetic: `$((…))`, `((…))`, a subscript, a substring, `let`, `[[ … -eq … ]]`.
    Arithmetic,
    /// Where a builtin takes a name and some shells evaluate it: `read …`, `printf -v …`.
    Name,
    /// Where a builtin might take it for an option: `printf …`.
    Option,
    /// The list of an array in quotes: `declare -a x=…`.
    List,
    /// Code that a shell reads: `eval …`, `trap …`, `sh -c …`.
    DiagnosticCode,
    /// The word behind `<<`.
    Delimiter,
    /// Where the name of a parameter is expected: `${x${item}}`.
    ParameterName,
    /// A pattern inside a here-document, where not every shell can quote it.
    BodyPattern,
    /// `${x:=…}` and `${x/…}` outside of quotes: the result is split into words.
    SplitResult,
    /// A here-document with a quoted delimiter inside backquotes.
    BackquotedBody,
    /// A here-document whose quoted delimiter is not a plain word.
    OddDelimiter,
    /// A `$${` that would need a backslash inside backquotes.
    BackquotedLiteral,
    /// Behind parentheses that do not pair, or a `((` that is two parentheses.
    Parentheses,
    /// Behind backquotes that shells read differently.
    Backquotes,
    /// Behind a here-document that shells end differently.
    HereDocument,
    /// Behind a single `'` in `"${x:-…}"`.
    Apostrophe,
    /// Behind or in a `${…}` that is none.
    Substitution,
    /// Behind or in `$[`, which only some shells know.
    Bracket,
}

impl Obstacle {
    /// `what` is the reference as written.
    pub(super) fn message(self, what: &str) -> String {
        let why = match self {
            Self::Arithmetic => "stands in arithmetic, where some shells run what a value holds",
            Self::Name => "is taken for a name, and some shells run what a name holds",
            Self::Option => "may be taken for an option, and with some options shells run what a value holds",
            Self::List => "becomes the list of an array, where some shells run what a value holds",
            Self::DiagnosticCode => "stands in code for a shell, which would run what a value holds",
            Self::Delimiter => "cannot be the word that ends a here-document",
            Self::ParameterName => "cannot be part of the name of a parameter",
            Self::BodyPattern => "is part of a pattern in a here-document, where some shells cannot quote it",
            Self::SplitResult => "becomes part of a result that the shell splits into words",
            Self::BackquotedBody => "stands in a quoted here-document inside backquotes",
            Self::OddDelimiter => "stands in a here-document whose quoted delimiter is not a plain word",
            Self::BackquotedLiteral => "stands in quotes inside backquotes",
            Self::Parentheses => "stands behind parentheses that do not pair",
            Self::Backquotes => "stands behind backquotes that not all shells read alike",
            Self::HereDocument => "stands behind a here-document that not all shells end alike",
            Self::Apostrophe => "stands behind a single `'` in `\"${…}\"`, which not all shells read alike",
            Self::Substitution => "stands in or behind a `${…}` that not all shells know",
            Self::Bracket => "stands in or behind a `$[`, which is arithmetic in some shells",
        };
        format!("`{what}` {why}")
    }

    /// `name` is the reference without its braces.
    pub(super) fn help(self, name: &str) -> String {
        let help = match self {
            Self::Arithmetic => {
                return format!("check the value first, and write `${{raw:{name}}}` if it is trusted");
            }
            Self::Name => {
                return format!("write the name out, or `${{raw:{name}}}` if it is trusted");
            }
            Self::Option => {
                return format!("write `--` before it, or a format: `printf '%s' ${{{name}}}`");
            }
            Self::List => return format!("write the list in parentheses: `(${{{name}}})`"),
            Self::DiagnosticCode => {
                return format!(
                    "pass it as an argument, as in `sh -c '… \"$1\"' _ ${{{name}}}`, \
                     or write `${{raw:{name}}}` if it is trusted"
                );
            }
            Self::Delimiter | Self::OddDelimiter => "use a plain word such as `EOF`",
            Self::ParameterName => "a parameter's name must be written out",
            Self::BodyPattern => "compute the result before the here-document: `x=${f%…}`",
            Self::SplitResult => "put the whole `${…}` in double quotes",
            Self::BackquotedBody | Self::BackquotedLiteral | Self::Backquotes => {
                "write `$(…)` instead of backquotes"
            }
            Self::Parentheses => "write two parentheses that are not arithmetic as `( (`",
            Self::HereDocument => {
                "end the line before the `)`, and choose a delimiter that stands nowhere else"
            }
            Self::Apostrophe => "give the text to a variable of its own first",
            Self::Substitution => "write `$(…)` to run a command",
            Self::Bracket => "write `$((…))` for arithmetic, and `\\$[` for the two characters",
        };
        help.to_owned()
    }
}
