//! A table of people with three indexes, for the tests of indexes.

use longshore::{Database, Index, IndexSpec, Result, TypedTable, Value};

/// A person with some languages; found by name, by each language, and by a badge that nobody shares.
#[derive(Value, Clone, Debug, PartialEq)]
pub struct Person {
    pub last: String,
    pub badge: Option<u32>,
    pub languages: Vec<u8>,
}

pub type People = TypedTable<u32, Person>;
pub type ByLast = Index<String, u32, Person>;
pub type ByBadge = Index<u32, u32, Person>;
pub type ByLanguage = Index<(u8, String), u32, Person>;

pub fn by_last() -> IndexSpec<String, u32, Person> {
    IndexSpec::new("by last", "last v1", |_, person: &Person| {
        [person.last.clone()]
    })
}

pub fn by_badge() -> IndexSpec<u32, u32, Person> {
    IndexSpec::unique("by badge", "badge v1", |_, person: &Person| person.badge)
}

pub fn by_language() -> IndexSpec<(u8, String), u32, Person> {
    IndexSpec::new("by language", "language, last v1", |_, person: &Person| {
        let last = &person.last;
        let keys = person
            .languages
            .iter()
            .map(|language| (*language, last.clone()));
        keys.collect::<Vec<_>>()
    })
}

pub struct World {
    pub people: People,
    pub by_last: ByLast,
    pub by_badge: ByBadge,
    pub by_language: ByLanguage,
}

pub fn world(db: &Database) -> Result<World> {
    let people: People = TypedTable::open_or_create(db, "people")?;
    Ok(World {
        by_last: people.open_or_create_index(db, by_last())?,
        by_badge: people.open_or_create_index(db, by_badge())?,
        by_language: people.open_or_create_index(db, by_language())?,
        people,
    })
}

pub fn person(last: &str, badge: u32) -> Person {
    Person {
        last: last.into(),
        badge: Some(badge),
        languages: vec![1, badge as u8 % 3, 1],
    }
}

pub fn message<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    outcome.expect_err("it is refused").to_string()
}
