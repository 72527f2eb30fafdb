//! What rows are found by, asked of the program's own function.

use crate::error::{Error, Result};
use crate::table::TableState;
use crate::typed::{DecodeError, Key, Value};
use std::any::{TypeId, type_name};
use std::marker::PhantomData;

/// Room for two index keys of usual length.
const PAIR_BYTES: usize = 128;

/// An extractor without its types.
pub(crate) trait Extract: Send + Sync {
    /// The encodings of the index keys of a row: sorted, each once.
    ///
    /// # Errors
    /// [`Error::Decode`] when the row is of other types.
    fn keys_of(&self, table: &TableState, key: &[u8], value: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Whether both values give a row the same index keys, in the same order. Cheap: most changes of a row
    /// leave them as they are.
    ///
    /// # Errors
    /// Those of [`Extract::keys_of`].
    fn gives_same_keys(
        &self,
        table: &TableState,
        key: &[u8],
        old: &[u8],
        new: &[u8],
    ) -> Result<bool>;

    /// How many bytes at the front of an entry are the index key.
    ///
    /// # Errors
    /// [`DecodeError`] when none are.
    fn key_bytes_in(&self, entry: &[u8]) -> std::result::Result<usize, DecodeError>;

    /// The types of index key, key and value.
    fn types(&self) -> TypeId;

    /// Their names.
    fn type_names(&self) -> &'static str;
}

/// A function from rows of `K` and `V` to keys `I`.
pub(super) struct Function<I, K, V, F> {
    function: F,
    types: PhantomData<fn(K, V) -> I>,
}

impl<I, K, V, F> Function<I, K, V, F> {
    pub(super) fn new(function: F) -> Function<I, K, V, F> {
        Function {
            function,
            types: PhantomData,
        }
    }
}

impl<I, K, V, F, Keys> Extract for Function<I, K, V, F>
where
    I: Key + 'static,
    K: Key + 'static,
    V: Value + 'static,
    F: Fn(&K, &V) -> Keys + Send + Sync,
    Keys: IntoIterator<Item = I>,
{
    fn keys_of(&self, table: &TableState, key: &[u8], value: &[u8]) -> Result<Vec<Vec<u8>>> {
        let key = K::from_bytes(key).map_err(undecoded(table, "key"))?;
        let value = V::from_bytes(value).map_err(undecoded(table, "value"))?;
        let keys = (self.function)(&key, &value).into_iter();
        let mut encoded: Vec<Vec<u8>> = keys.map(|key| key.to_bytes()).collect();
        encoded.sort_unstable();
        encoded.dedup();
        Ok(encoded)
    }

    fn gives_same_keys(
        &self,
        table: &TableState,
        key: &[u8],
        old: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        let key = K::from_bytes(key).map_err(undecoded(table, "key"))?;
        let keys = |value: &[u8]| match V::from_bytes(value) {
            Ok(value) => Ok((self.function)(&key, &value).into_iter()),
            Err(error) => Err(undecoded(table, "value")(error)),
        };
        let (mut old, mut new) = (keys(old)?, keys(new)?);
        let mut pair = Vec::with_capacity(PAIR_BYTES);
        loop {
            match (old.next(), new.next()) {
                (None, None) => return Ok(true),
                (Some(old), Some(new)) => {
                    pair.clear();
                    old.encode(&mut pair);
                    let middle = pair.len();
                    new.encode(&mut pair);
                    if pair[..middle] != pair[middle..] {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
    }

    fn key_bytes_in(&self, entry: &[u8]) -> std::result::Result<usize, DecodeError> {
        let mut rest = entry;
        I::decode(&mut rest)?;
        Ok(entry.len() - rest.len())
    }

    fn types(&self) -> TypeId {
        TypeId::of::<(I, K, V)>()
    }

    fn type_names(&self) -> &'static str {
        type_name::<(I, K, V)>()
    }
}

/// What a row of other types is refused with.
fn undecoded(table: &TableState, part: &'static str) -> impl Fn(DecodeError) -> Error {
    move |source| Error::Decode {
        table: table.name(),
        part,
        source,
    }
}
