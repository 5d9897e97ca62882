/**
 * Number of nested levels in which each object member is a separate piece. In an OpenAPI document, a piece is then one
 * operation or one schema.
 */
export const levelsInPieces = 3;

/** Yields the pieces of the text that `JSON.stringify` would return. */
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
