/** The most levels of nesting that are read of an answer: no case has more than fifty, and comparing takes a stack. */
const depthLimit = 1000;

/** Parses a JSON text. Returns `undefined` when it is none, or nested too deeply to be compared. */
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

/** A bracket outside of strings: where it is, and whether it opens a level or closes one. */
export interface Bracket {
  readonly index: number;
  readonly step: 1 | -1;
}

/** Finds the brackets outside of strings, in one pass: an answer may be any text. */
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
