//! The items of a map, from the bytes they are read from.

use undaunted_engine::event::NewItem;
use undaunted_engine::workflow::Map;
use undaunted_engine::workflow::input::read;

/// Items, or why there are none.
pub(crate) type Items = Result<Vec<NewItem>, String>;

/// Reads, selects and names the items of a map.
pub(crate) fn items_of(map: &Map, name: &str, bytes: &[u8]) -> Items {
    let wrong = |error: undaunted_engine::workflow::input::InputError| {
        let help = error.help.as_ref().map(|help| format!(" ({help})"));
        format!(
            "the input {name} cannot be used: {error}{}",
            help.unwrap_or_default()
        )
    };
    let document = read(bytes, map.input.format).map_err(wrong)?;
    let items = map.selection.select(document).map_err(wrong)?;
    if u32::try_from(items.len()).is_err() {
        return Err(format!(
            "the input {name} has {} items, too many",
            items.len()
        ));
    }
    let items = items.into_iter().map(|item| NewItem {
        identity: item.identity,
        input: item.input.to_string(),
    });
    Ok(items.collect())
}
