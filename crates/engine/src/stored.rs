//! Types that are written to disk.
//!
//! The numbers of fields and variants are part of the stored format: they are added, never reused.

/// Defines types with a derived CBOR codec. `field: Type = 3` has the number 3; `with "module"` names the
/// codec of a type from another crate, and `has_nil` says that it takes an absent value for `None`. A field
/// without a number needs `#[cbor(skip)]`. `Variant = 3 => "name"` also sets what `word` returns.
macro_rules! stored {
    () => {};
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[$attr:meta])*
                $field_vis:vis $field:ident: $type:ty
                    $(= $number:tt $(with $codec:tt $($nil:ident)?)?)?,
            )*
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[derive(minicbor::Encode, minicbor::Decode)]
        $vis struct $name {
            $(
                $(#[$attr])*
                $(#[cbor(n($number) $(, with = $codec $(, $nil)?)?)])?
                $field_vis $field: $type,
            )*
        }

        $crate::stored::stored! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$attr:meta])*
                $variant:ident
                    $(($inner:ty = $inner_number:tt $(with $inner_codec:tt)?))?
                    $({$(
                        $(#[$field_attr:meta])*
                        $field:ident: $type:ty = $field_number:tt $(with $codec:tt $($nil:ident)?)?
                    ),* $(,)?})?
                    = $number:tt $(=> $word:literal)?,
            )*
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[derive(minicbor::Encode, minicbor::Decode)]
        $vis enum $name {
            $(
                $(#[$attr])*
                #[n($number)]
                $variant
                    $((#[cbor(n($inner_number) $(, with = $inner_codec)?)] $inner))?
                    $({$(
                        $(#[$field_attr])*
                        #[cbor(n($field_number) $(, with = $codec $(, $nil)?)?)]
                        $field: $type
                    ),*})?,
            )*
        }

        $crate::stored::words! { $vis $name { $($variant $($word)?,)* } }
        $crate::stored::stored! { $($rest)* }
    };
}

/// The function `word` of a stored enum whose variants all have a word.
macro_rules! words {
    ($vis:vis $name:ident { $($variant:ident,)* }) => {};
    ($vis:vis $name:ident { $($variant:ident $word:literal,)* }) => {
        impl $name {
            /// Its name in JSON.
            $vis const fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $word,)*
                }
            }
        }
    };
}

/// Defines an enum whose variants have a word each: `Variant = "word"`.
macro_rules! worded {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$attr:meta])* $variant:ident = $word:literal,)* }
    )*) => {$(
        $(#[$meta])*
        pub enum $name { $($(#[$attr])* $variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            pub const WORDS: &[&str] = &[$($word),*];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    )*};
}

pub(crate) use {stored, worded, words};
