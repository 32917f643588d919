//! Why a reference is not allowed at its position.
//!
//! Some positions would execute a value, some have no way to quote a value, and after some texts shells
//! disagree about what is quoted. The messages are here; the lexer finds the positions.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// `$((…))`, `((…))`, a subscript, a substring, `let`, `[[ … -eq … ]]`.
    Arithmetic,
    /// `read …`, `printf -v …`.
    Name,
    /// `printf …`.
    Option,
    /// `declare -a x=…`.
    List,
    /// `eval …`, `trap …`, `sh -c …`.
    Code,
    /// The word behind `<<`.
    Delimiter,
    /// `${x${item}}`.
    ParameterName,
    BodyPattern,
    /// `${x:=…}` and `${x/…}` outside quotes.
    SplitResult,
    BackquotedBody,
    OddDelimiter,
    /// A `$${` that would need a backslash inside backquotes.
    BackquotedLiteral,
    /// Behind parentheses that do not pair, or a `((` that is two parentheses.
    Parentheses,
    Backquotes,
    HereDocument,
    Apostrophe,
    /// Behind or in a `${…}` that is not a parameter.
    Substitution,
    Bracket,
}

impl Obstacle {
    /// What is wrong with the reference, and the help, in which `NAME` stands for it.
    pub(super) fn texts(self) -> (&'static str, &'static str) {
        let dollar_parenthesis = "write `$(…)` instead of backquotes";
        let plain_word = "use a plain word such as `EOF`";
        match self {
            Self::Arithmetic => (
                "is in arithmetic, where some shells execute a value",
                "check the value first, and write `${raw:NAME}` if it is trusted",
            ),
            Self::Name => (
                "is used as a name, which some shells evaluate",
                "write the name out, or `${raw:NAME}` if the value is trusted",
            ),
            Self::Option => (
                "may be read as an option, and with some options shells execute a value",
                "write `--` before it, or use a format: `printf '%s' ${NAME}`",
            ),
            Self::List => (
                "becomes the list of an array, where some shells execute a value",
                "write the list in parentheses: `(${NAME})`",
            ),
            Self::Code => (
                "is in code for a shell, which would execute the value",
                "pass it as an argument, as in `sh -c '… \"$1\"' _ ${NAME}`, \
                 or write `${raw:NAME}` if it is trusted",
            ),
            Self::Delimiter => ("cannot be the delimiter of a here-document", plain_word),
            Self::ParameterName => ("cannot be part of a parameter name", "write the parameter name out"),
            Self::BodyPattern => (
                "is part of a pattern in a here-document, where some shells cannot quote it",
                "compute the result before the here-document: `x=${f%…}`",
            ),
            Self::SplitResult => (
                "becomes part of a result that the shell splits into words",
                "put the whole `${…}` in double quotes",
            ),
            Self::BackquotedBody => ("is in a quoted here-document inside backquotes", dollar_parenthesis),
            Self::OddDelimiter => {
                ("is in a here-document whose quoted delimiter is not a plain word", plain_word)
            }
            Self::BackquotedLiteral => ("is in quotes inside backquotes", dollar_parenthesis),
            Self::Parentheses => {
                ("follows unbalanced parentheses", "write two parentheses that are not arithmetic as `( (`")
            }
            Self::Backquotes => ("follows backquotes that shells read differently", dollar_parenthesis),
            Self::HereDocument => (
                "follows a here-document that shells end differently",
                "end the line before the `)`, and choose a delimiter that occurs nowhere else",
            ),
            Self::Apostrophe => (
                "follows a single `'` in `\"${…}\"`, which shells read differently",
                "assign the text to a variable first",
            ),
            Self::Substitution => {
                ("is in or after a `${…}` that not all shells support", "write `$(…)` to run a command")
            }
            Self::Bracket => (
                "is in or after `$[`, which is arithmetic in some shells",
                "write `$((…))` for arithmetic, and `\\$[` for the two characters",
            ),
        }
    }
}
