use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Act {
    Insert(u16),
    Remove(u16),
    Add(u16),
    Retain(u16),
}

fn act() -> impl Strategy<Value = Act> {
    let key = || prop_oneof![0..40_u16, 0..600_u16];
    prop_oneof![
        8 => key().prop_map(Act::Insert),
        3 => key().prop_map(Act::Remove),
        4 => key().prop_map(Act::Add),
        1 => (2..9_u16).prop_map(Act::Retain),
    ]
}

proptest! {
    #[test]
    fn bytes_are_ordered_as_slices_are(
        common in prop::collection::vec(0..3_u8, 0..20),
        left in prop::collection::vec(0..3_u8, 0..12),
        right in prop::collection::vec(prop_oneof![0..3_u8, any::<u8>()], 0..12),
    ) {
        let (left, right) = ([&common[..], &left].concat(), [&common[..], &right].concat());
        prop_assert_eq!(bytes_order(&left, &right), left.cmp(&right));
    }

    #[test]
    fn a_map_does_what_a_tree_does(acts in prop::collection::vec(act(), 0..700)) {
        let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                Act::Insert(key) => {
                    prop_assert_eq!(map.insert(key, number), tree.insert(key, number));
                }
                Act::Remove(key) => prop_assert_eq!(map.remove(&key), tree.remove(&key)),
                Act::Add(key) => {
                    *map.get_or_default(key) += number;
                    *tree.entry(key).or_default() += number;
                }
                Act::Retain(share) => {
                    map.retain(|key, _| key % share != 0);
                    tree.retain(|key, _| key % share != 0);
                }
            }
        }
        prop_assert!(map.iter().eq(&tree));
        prop_assert!(map.keys().rev().eq(tree.keys().rev()));
        prop_assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
        for key in 0..620 {
            prop_assert_eq!(map.get(&key), tree.get(&key));
        }
        prop_assert_eq!(&map, &tree.iter().rev().map(|(key, value)| (*key, *value)).collect());
        prop_assert!(map.into_iter().eq(tree));
    }

    #[test]
    fn a_set_does_what_a_tree_does(one: Vec<u8>, other: Vec<u8>) {
        let sets: [SortedSet<u8>; 2] = [&one, &other].map(|items| items.iter().copied().collect());
        let trees: [BTreeSet<u8>; 2] = [&one, &other].map(|items| items.iter().copied().collect());
        let ([one, other], [first, second]) = (&sets, &trees);
        prop_assert!(one.iter().eq(first));
        prop_assert!(one.difference(other).eq(first.difference(second)));
        prop_assert!(one.intersection(other).eq(first.intersection(second)));
        let different = one.clone().symmetric_difference(other.clone());
        prop_assert!(different.iter().eq(first.symmetric_difference(second)));
        prop_assert_eq!(one.is_subset(other), first.is_subset(second));
        prop_assert_eq!(one == other, first == second);
        for item in 0..=u8::MAX {
            prop_assert_eq!(one.first_from(&item), first.range(item..).next());
        }
    }
}

#[test]
fn keys_in_any_order_move_few_items_each() {
    const COUNT: u64 = 100_000;
    for step in [1, COUNT - 1, 7_919] {
        let keys = (0..COUNT).map(|number| number * step % COUNT);
        let map: SortedMap<u64, u64> = keys.map(|key| (key, key)).collect();
        assert_eq!(map.len(), COUNT as usize);
        assert!(map.parts.iter().all(|part| part.len() <= MAX_ITEMS));
        assert!(map.keys().copied().eq(0..COUNT));
    }
}
