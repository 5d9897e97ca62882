/**
 * Values by text, for look-ups by texts of clients' making, most of which are not there, such as paths.
 *
 * V8 interns a text that it looks for in a `Map`. For one that it has not met before, as most paths with an id, that
 * costs 0.3 to 0.8 µs and a place in its table of all texts. So the `Map` is asked only for texts that agree with one of
 * its own in length and in two characters.
 */
export class TextIndex<Value> {
  readonly #values: ReadonlyMap<string, Value>;
  readonly #shapes: ReadonlySet<number>;

  /** Makes an index of these; the last one of a text counts. */
  constructor(entries: Iterable<readonly [string, Value]>) {
    this.#values = new Map(entries);
    this.#shapes = new Set([...this.#values.keys()].map(shapeOf));
  }

  /** The value of the text. */
  get(text: string): Value | undefined {
    return this.#shapes.has(shapeOf(text)) ? this.#values.get(text) : undefined;
  }
}

// A small integer of V8's, also where the text is absurdly long.
function shapeOf(text: string): number {
  const { length } = text;
  if (length === 0) return 0;
  return (
    ((length & 0x3fff) << 16) | ((text.charCodeAt(length - 1) & 0xff) << 8) | (text.charCodeAt(length >> 1) & 0xff)
  );
}
