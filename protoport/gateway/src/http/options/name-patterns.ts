/** Values by name or by prefix. A pattern that ends with `*`, such as `a.b.*`, is a prefix. */
export class NamePatterns<Value = true> {
  readonly #names = new Map<string, Value>();
  /** The prefixes, longest first. */
  readonly #prefixes: readonly (readonly [prefix: string, value: Value])[];

  constructor(patterns: Iterable<readonly [pattern: string, value: Value]>) {
    const prefixes: (readonly [prefix: string, value: Value])[] = [];
    for (const [pattern, value] of patterns) {
      if (pattern.endsWith("*")) prefixes.push([pattern.slice(0, -1), value]);
      else this.#names.set(pattern, value);
    }
    this.#prefixes = prefixes.toSorted(([a], [b]) => b.length - a.length);
  }

  /** Returns the value of the name itself, or else of its longest prefix. */
  get(name: string): Value | undefined {
    return this.#names.get(name) ?? this.#prefixes.find(([prefix]) => name.startsWith(prefix))?.[1];
  }
}

/** Creates a function that returns whether a name matches one of the patterns. */
export function matcherOf(patterns: readonly string[]): (name: string) => boolean {
  const known = new NamePatterns(patterns.map((pattern) => [pattern, true] as const));
  return (name) => known.get(name) === true;
}
