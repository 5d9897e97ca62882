/**
 * Limits the fields that a document repeats: query parameters and examples contain the fields of nested messages. For
 * example, 20 types that each have two fields of the next type would become a million parameters.
 */

/** The maximum number of fields in one operation's parameters and inline bodies. Google's APIs use up to 400 fields. */
export const maxOperationFields = 1_000;

/** The maximum number of nested message fields in an example. More than 200 fields do not help a reader. */
export const maxExampleFields = 200;

/** The maximum number of fields in a component, or values in an enum. Google's largest message has 300 fields. */
export const maxComponentFields = 5_000;

/** Maximum fields in a document's parameters, inline bodies and examples (30 MB). All Google APIs need 150,000. */
export const maxDocumentFields = 300_000;

/** The note in a document where fields are omitted. */
export const fieldsOmittedNote = "Not all fields are listed here; the others can be set, too.";

/** Number of characters in names and comments that count as one more field. */
const charactersPerField = 100;

/** A budget for the fields that a document may expand. */
export class FieldBudget {
  #remaining: number;
  #usedFields = 0;
  readonly #total: FieldBudget | undefined;
  #isExceeded = false;

  /** @param total - the document's budget, which also counts the fields */
  constructor(maxFields: number, total?: FieldBudget) {
    this.#remaining = maxFields;
    this.#total = total;
  }

  /** Whether a field was omitted because of the budget. */
  get isExceeded(): boolean {
    return this.#isExceeded;
  }

  /** Number of fields counted so far. */
  get usedFields(): number {
    return this.#usedFields;
  }

  /** Counts one field with these names and comments. Returns whether the field may be expanded. */
  takeField(...texts: readonly (string | undefined)[]): boolean {
    const characters = texts.reduce((sum, text = "") => sum + text.length, 0);
    return this.reserve(1 + Math.floor(characters / charactersPerField));
  }

  /** Counts fields if all fields fit in the budget. Returns whether the fields may be expanded. */
  reserve(fields: number): boolean {
    if (fields > this.#remaining || this.#total?.reserve(fields) === false) {
      this.#isExceeded = true;
      return false;
    }
    this.#remaining -= fields;
    this.#usedFields += fields;
    return true;
  }
}
