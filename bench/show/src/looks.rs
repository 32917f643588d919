//! The commands that are measured.

/// The commands of one table.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) looks: &'static [Look],
}

/// A read-only command.
pub(crate) struct Look {
    /// The arguments as a user types them.
    pub(crate) typed: &'static str,
    /// Whether the output grows with the items, so that the time of the first line is of interest too.
    pub(crate) streams: bool,
}

const fn look(typed: &'static str) -> Look {
    Look { typed, streams: false }
}

/// The first command on every store, which creates the index.
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

pub(crate) fn all() -> impl Iterator<Item = &'static Look> {
    GROUPS.iter().flat_map(|group| group.looks)
}
