/**
 * Why a text is not the message it should be (`message`), and at which field (`path`).
 *
 * Internal to this room and to `rest`: the edge turns it into a `ConnectError` of `InvalidArgument`.
 * The path grows from the leaf outwards while the error travels up, so that nothing is paid for it
 * when all is well.
 */
export class FieldProblem extends Error {
  override readonly name = "FieldProblem";
  readonly #path: string[] = [];

  /** The field as the client may know it (`plant.tags[2]`), or `""` for the message itself. */
  get path(): string {
    return this.#path.join("").replace(/^\./, "");
  }

  /** Adds the field that held the value with the problem. */
  insideField(name: string): this {
    this.#path.unshift(`.${name}`);
    return this;
  }

  /** Adds the position that held the value with the problem: an index, or a map's key. */
  insideItem(key: string | number): this {
    this.#path.unshift(typeof key === "number" ? `[${key}]` : `[${quote(key)}]`);
    return this;
  }

  /** The whole sentence: the field, then the reason. */
  describe(): string {
    return this.path === "" ? this.message : `${this.path}: ${this.message}`;
  }
}

/** Longest excerpt of a client's input in an error message, in UTF-16 units: enough to recognise it, too little to flood a log. */
const excerptUnitsMax = 64;

/** A client's text as it may appear in an error message: quoted as JSON, cut to 64 units. */
export function quote(text: string): string {
  const excerpt = text.length > excerptUnitsMax ? `${text.slice(0, excerptUnitsMax)}…` : text;
  return JSON.stringify(excerpt.toWellFormed());
}
