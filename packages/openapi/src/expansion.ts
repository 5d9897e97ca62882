/**
 * Limits on how much of a definition a document repeats.
 *
 * Query parameters and examples expand nested messages, so a definition with 20 messages, each with two fields for the
 * next one, would become a million parameters. All expanded fields are counted here.
 */

/** The maximum number of fields in one operation's parameters and inline bodies. 1,000: Google's APIs need 400. */
export const operationFieldsMax = 1_000;

/** The maximum number of nested message fields in an example. 200, because more do not help a reader. */
export const exampleFieldsMax = 200;

/** The maximum number of fields in a component, or values in an enum. 5,000: Google's largest message has 300. */
export const componentFieldsMax = 5_000;

/**
 * The maximum number of fields that a document repeats, which limits its text to 30 MB. All of Google's APIs together
 * need half as many.
 */
export const documentFieldsMax = 300_000;

/** The note in a document where fields are left out. */
export const fieldsOmittedNote = "Not all fields are listed here; the others can be set, too.";

/** As many characters in names and comments count as one more field. */
const charactersPerField = 100;

/** A field budget that may be expanded. */
export class Expansion {
  #remaining: number;
  #usedFields = 0;
  readonly #total: Expansion | undefined;
  #isCut = false;

  /** @param total - the document's budget, which the fields also count toward */
  constructor(fieldsMax: number, total?: Expansion) {
    this.#remaining = fieldsMax;
    this.#total = total;
  }

  /** Whether something was left out. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** How many fields were counted so far. */
  get usedFields(): number {
    return this.#usedFields;
  }

  /** Counts one field with these names and comments. Returns whether it may be expanded. */
  takeField(...texts: readonly (string | undefined)[]): boolean {
    const characters = texts.reduce((sum, text = "") => sum + text.length, 0);
    return this.reserve(1 + Math.floor(characters / charactersPerField));
  }

  /**
   * Counts fields if all fit in the budget, otherwise none. Returns whether they may be expanded.
   */
  reserve(fields: number): boolean {
    if (fields > this.#remaining || this.#total?.reserve(fields) === false) {
      this.#isCut = true;
      return false;
    }
    this.#remaining -= fields;
    this.#usedFields += fields;
    return true;
  }
}
