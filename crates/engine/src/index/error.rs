//! What can go wrong with an index.

/// Why something was refused because of an index, or an index itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// No index of the table has the name.
    #[error("table `{table}` has no index `{index}`; create it, or see `Table::indexes`")]
    Missing {
        /// The table.
        table: String,
        /// The name asked for.
        index: String,
    },
    /// An index of the table has the name already.
    #[error("table `{table}` has an index `{index}` already; open it, or choose another name")]
    Exists {
        /// The table.
        table: String,
        /// The name asked for.
        index: String,
    },
    /// The index was created otherwise than it is opened now.
    #[error(
        "index `{index}` of table `{table}` is {found}, but is opened as {asked}; if that is what is \
         wanted, drop the index and create it anew"
    )]
    Differs {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// What it is.
        found: String,
        /// What it was opened as.
        asked: String,
    },
    /// Nobody has said yet what the index's keys are.
    #[error(
        "table `{table}` has the index `{index}`, and nobody has registered what its keys are; open \
         it with `TypedTable::open_index` before rows are changed"
    )]
    NotRegistered {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// The index is being built, or could not be.
    #[error(
        "index `{index}` of table `{table}` is not ready: it is being built, or its building has \
         failed; wait, or create it anew"
    )]
    NotReady {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// One row was asked for, by an index in which several rows may have the same key.
    #[error("index `{index}` of table `{table}` is not unique; use `find`, which yields all rows")]
    NotUnique {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// Index and table do not agree.
    #[error(
        "index `{index}` of table `{table}` does not fit the table: {what}; the extractor must always \
         give the same keys for the same row; drop the index and create it anew"
    )]
    Mismatch {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// What is missing or too much.
        what: String,
    },
    /// An operation that cannot keep indexes.
    #[error("table `{table}` has indexes, which need whole values; {instead}")]
    WholeValues {
        /// The table.
        table: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A name or a definition that no index may have.
    #[error("an index's {part} has {least} to 255 bytes; this one has {length}")]
    Name {
        /// `name` or `definition`.
        part: &'static str,
        /// The fewest bytes.
        least: usize,
        /// The bytes of the refused one.
        length: usize,
    },
}
