/** Returns a function that computes a value once for each key, such as a descriptor, and keeps it as long as the key. */
export function oncePer<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const values = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    let kept = values.get(key);
    if (kept === undefined) {
      kept = { value: compute(key) };
      values.set(key, kept);
    }
    return kept.value;
  };
}
