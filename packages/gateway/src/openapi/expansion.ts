/**
 * How much a document may repeat of what a definition says once.
 *
 * Query parameters and examples write out messages inside messages, so a definition of 20 messages, each with two fields
 * of the next one, would become a million parameters. Everything that is written out is counted here.
 */

/** Fields of messages that the parameters and inline bodies of one operation list. 1,000: Google's APIs need 400. */
export const operationFieldsMax = 1_000;

/** Fields of messages inside a message that its example shows. 200: more are no help to a reader. */
export const exampleFieldsMax = 200;

/** Fields that one component lists, or values of an enum. 5,000: Google's largest message has 300. */
export const componentFieldsMax = 5_000;

/** Fields that a document repeats, all in all: 30 MB of text at most. Google's APIs together need half of it. */
export const documentFieldsMax = 300_000;

/** What a document says where fields are left out. */
export const cutOff = "Not all fields are listed here; the others can be set, too.";

/** Characters of names and comments that count as one more field. */
const charactersPerField = 100;

/** A number of fields that may be written out. */
export class Expansion {
  #left: number;
  #used = 0;
  readonly #whole: Expansion | undefined;
  #isCut = false;

  /** @param whole - what the fields count towards as well: the document */
  constructor(fieldsMax: number, whole?: Expansion) {
    this.#left = fieldsMax;
    this.#whole = whole;
  }

  /** Whether something was left out. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** The fields that were taken. */
  get used(): number {
    return this.#used;
  }

  /** Takes a field with these texts. Returns whether it may be written out. */
  takeField(...texts: readonly (string | undefined)[]): boolean {
    const characters = texts.reduce((sum, text = "") => sum + text.length, 0);
    return this.take(1 + Math.floor(characters / charactersPerField));
  }

  /** Takes a number of fields, or none of them. Returns whether they may be written out. */
  take(fields: number): boolean {
    if (fields > this.#left || this.#whole?.take(fields) === false) {
      this.#isCut = true;
      return false;
    }
    this.#left -= fields;
    this.#used += fields;
    return true;
  }
}
