/** Returns a function that computes a value once for each key, such as a descriptor, and keeps it as long as the key. */
export function oncePer<Key extends object, Value extends object | boolean>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const values = new WeakMap<Key, Value>();
  return (key) => {
    const kept = values.get(key);
    if (kept !== undefined) return kept;
    const value = compute(key);
    values.set(key, value);
    return value;
  };
}
