/**
 * How many nested levels are written in pieces, down to the members in `paths` and `components`. A value below these
 * levels, such as an operation or a schema, is written in one piece.
 */
export const levelsInPieces = 3;

/** Writes a value as `JSON.stringify` does, but in pieces, which are short for an OpenAPI document. */
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
