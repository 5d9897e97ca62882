import { StoreOpenError } from "../../contract/store-open-error.ts";

/** A database URL's parameters, see {@link parseUrl}. */
export type Parameters = ReadonlyMap<string, string>;

/**
 * Returns the value of a parameter that allows only certain values, or `undefined` if it is missing.
 *
 * @throws StoreOpenError that contains the values
 */
export function readWord<Word extends string>(
  parameters: Parameters,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = parameters.get(name);
  const word = words.find((each) => each === text);
  if (word !== undefined || text === undefined) return word;
  const accepted = words.length === 1 ? words.join() : `one of ${words.join(", ")}`;
  throw new StoreOpenError(`${name} in the database URL must be ${accepted}, got ${JSON.stringify(text)}`);
}
