//! The commands that are measured.

/// Commands that one table shows.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) looks: &'static [Look],
}

/// A command that looks at a job and changes nothing.
pub(crate) struct Look {
    /// As it is typed, without the name of the program.
    pub(crate) typed: &'static str,
    /// Prints more the more items there are, so that its first line is of interest too.
    pub(crate) streams: bool,
}

const fn look(typed: &'static str) -> Look {
    Look { typed, streams: false }
}

/// The command that every store is looked at with first. It makes the index.
pub(crate) const FIRST: &str = "explain measured/item-500";

/// Item 507 is a dead letter.
pub(crate) const GROUPS: [Group; 4] = [
    Group {
        title: "The job",
        looks: &[
            look("show measured"),
            look("show measured --json"),
            look("explain measured"),
            look("budget show measured"),
            look("ls"),
        ],
    },
    Group {
        title: "One item",
        looks: &[
            look("explain measured/item-500"),
            look("explain measured/#500 --json"),
            look("attempts measured/item-500"),
            look("logs measured/item-500"),
        ],
    },
    Group {
        title: "Dead letters",
        looks: &[look("dlq ls measured"), look("dlq group measured"), look("dlq show measured item-507")],
    },
    Group { title: "Every attempt", looks: &[Look { typed: "attempts measured", streams: true }] },
];

/// All commands, group by group.
pub(crate) fn all() -> impl Iterator<Item = &'static Look> {
    GROUPS.iter().flat_map(|group| group.looks)
}
