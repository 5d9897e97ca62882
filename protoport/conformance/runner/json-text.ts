/** Maximum nesting depth of a response, because the comparison is recursive. No case has more than fifty levels. */
const depthLimit = 1000;

/** Parses JSON. Returns `undefined` for a text that is invalid or nested too deeply. */
export function parseJson(text: string): unknown {
  if (isDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDeep(text: string): boolean {
  let depth = 0;
  for (const { step } of bracketsOf(text)) {
    depth += step;
    if (depth > depthLimit) return true;
  }
  return false;
}

/** A bracket outside strings, with its index and whether it opens or closes a level. */
export type Bracket = { readonly index: number; readonly step: 1 | -1 };

/** Yields the brackets outside strings, in a single pass over any text. */
export function* bracketsOf(text: string): Generator<Bracket> {
  let isInString = false;
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index);
    if (character === '"') isInString = !isInString;
    else if (isInString && character === "\\") index++;
    else if (!isInString && "{[".includes(character)) yield { index, step: 1 };
    else if (!isInString && "]}".includes(character)) yield { index, step: -1 };
  }
}
