//! Banks: who read all accounts must have found the total.

use super::Analysis;
use crate::history::anomaly::Anomaly;
use crate::history::format::Content;
use crate::history::transactions::{Op, TxnId};
use crate::history::values::KeyId;
use std::collections::HashMap;

/// Adds up the accounts wherever one transaction saw them all.
pub(super) fn add_up(analysis: &mut Analysis) {
    let banks = &analysis.history.banks;
    let bank_of: HashMap<KeyId, usize> = banks
        .iter()
        .enumerate()
        .flat_map(|(bank, accounts)| accounts.accounts.iter().map(move |key| (*key, bank)))
        .collect();
    if bank_of.is_empty() {
        return;
    }
    let committed: Vec<TxnId> = analysis.committed().collect();
    for txn in committed {
        let mut balances: HashMap<usize, HashMap<KeyId, i64>> = HashMap::new();
        for op in analysis.history.operations(txn) {
            let Op::Read { version, .. } = op else {
                continue;
            };
            let version = analysis.history.values.at(*version);
            let (Some(bank), Content::Balance { balance, .. }) =
                (bank_of.get(&version.key), version.content)
            else {
                continue;
            };
            let accounts = balances.entry(*bank).or_default();
            accounts.entry(version.key).or_insert(balance);
        }
        for (bank, balances) in balances {
            let bank = &banks[bank];
            let sum: i128 = balances.values().map(|balance| i128::from(*balance)).sum();
            if balances.len() == bank.accounts.len() && sum != i128::from(bank.total) {
                let text = || format!("its accounts add up to {sum} instead of {}", bank.total);
                analysis.findings.add(Anomaly::WrongTotal, &[txn], text);
            }
        }
    }
}
