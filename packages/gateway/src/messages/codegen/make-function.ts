/**
 * The one place of the gateway that makes code at run time.
 *
 * Why it is worth it: a function that serves every type looks up each property by a name that it has in a variable, at
 * places of the code that have seen a hundred shapes of object, and calls each field through a pointer. V8 can do
 * little with that. A function that is written for one type names its properties in its text, and each of its lines
 * sees one shape. Read by closures, one for each field, a list of a hundred books takes 0.7 of the time of
 * `fromBinary`; read by code made for the type, 0.37 (in one process, by turns; a message of 38 KB). As JSON, closures
 * take 0.47 of the time of `fromJsonString` and 0.6 of that of `toJsonString`; made code 0.32 and 0.25. Nothing but
 * made code reaches the rest.
 *
 * Why it is safe: the text is made of descriptors, which the program that runs the gateway has compiled in or loaded. A
 * message, a header or any other input of a client never becomes a part of it. Of the descriptors it takes names and
 * numbers only, each as a literal of JSON, which is a literal of JavaScript too (ECMA-262, "JSON superset"); whatever
 * else a function refers to is handed over as a value under a name that was written here.
 *
 * Why it may be missing: a Worker, a page with a Content-Security-Policy, and node with
 * `--disallow-code-generation-from-strings` refuse it. That is asked once, when the first message comes by, and the
 * result is the same without it, by protobuf-es alone, or if it is JSON by the exact reader and the closures of
 * `json/`. A program that does not trust its descriptors runs with that flag, or has its gateway make none by the option
 * `codegen: false`.
 *
 * What it costs: some 0.2 ms for each type whose messages are read, and as much if they are written, at the first of
 * them. A service that nobody calls costs nothing.
 */

/** What the text of a function refers to, by name. */
export type Scope = Readonly<Record<string, unknown>>;

/** Part of the options of whatever reads or writes messages. */
export interface CodegenOptions {
  /** Whether code may be generated. Default: where the runtime allows it. */
  readonly codegen?: boolean;
}

/** What the runtime allows, once it was tried: it does not change while a process runs. */
let isAllowed: boolean | undefined;

/** Returns whether code may be generated with these options. */
export function mayMakeCode(options: CodegenOptions | undefined): boolean {
  if (options?.codegen === false) return false;
  isAllowed ??= tryToMake();
  return isAllowed;
}

/** Makes a function of the text of one. @throws EvalError where that is not allowed */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- what it makes is said by the text
export function makeFunction<T>(text: string, scope: Scope): T {
  // oxlint-disable-next-line typescript/no-implied-eval -- see above
  const within = new Function(...Object.keys(scope), `"use strict";\nreturn ${text};`);
  return within(...Object.values(scope));
}

function tryToMake(): boolean {
  try {
    return makeFunction<() => boolean>("() => true", {})();
  } catch {
    return false;
  }
}
