/** Returns a function that computes a value once per key, such as a descriptor. The value lives as long as the key. */
/* @__NO_SIDE_EFFECTS__ */
export function memoize<Key extends object, Value extends object | boolean>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const values = new WeakMap<Key, Value>();
  return (key) => {
    const cached = values.get(key);
    if (cached !== undefined) return cached;
    const value = compute(key);
    values.set(key, value);
    return value;
  };
}
