/**
 * The levels of a document that are written in pieces: its own, `paths` and `components`, and their members. What is in
 * these is an operation or a schema, and written at once.
 */
export const levelsInPieces = 3;

/** Writes a value as `JSON.stringify` does, in pieces that are short where the value is an OpenAPI document. */
export function* jsonPieces(value: unknown, levels: number = levelsInPieces): Generator<string> {
  if (typeof value !== "object" || value === null || Array.isArray(value) || levels === 0) {
    yield JSON.stringify(value);
    return;
  }
  let before = "{";
  for (const [key, each] of Object.entries(value)) {
    if (each === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonPieces(each, levels - 1);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}
