import type { DescMessage } from "@bufbuild/protobuf";
import { problem } from "../protobuf/index.ts";
import { withCode } from "../http/index.ts";
import type { MessageCheck } from "../serve/index.ts";
import type { Rules } from "./rules.ts";

/** Maximum fields, oneofs and messages with rules. Compiling this many rules takes less than a second. */
const maxOwners = 2000;
/** Maximum characters in all patterns. Compiling 1,000 characters takes up to 0.15 s. */
const maxPatternCharacters = 10_000;
/** Time limit for compiling all rules, in milliseconds. Compiling `maxOwners` rules takes a tenth of this time. */
const maxPrepareMs = 5000;
/** Milliseconds for checking one message, which blocks other calls. A CPU limit may suspend a container for 100 ms. */
const maxCheckMs = 300;
/** Maximum attempts to check one message. A busy machine may suspend this process for longer than the time limit. */
const maxAttempts = 4;

/** Runs a function with a time limit. Returns `false` if the function was interrupted. */
type TimeLimit = (run: () => void, timeoutMs: number) => boolean;

/**
 * Loads the watchdog of `node:vm`, which interrupts synchronous functions. Each run starts a thread (0.15 ms).
 *
 * @throws Error on a platform without `node:vm`
 */
export function openTimeLimit(): TimeLimit {
  // `node:vm` is not imported, because bundlers for browsers and workers would fail.
  const vm = globalThis.process?.getBuiltinModule?.("node:vm");
  if (vm === undefined)
    throw withCode(new Error("the option untrusted of openValidation requires node:vm"), "ERR_OPTIONS");
  const { createContext, Script } = vm;
  const context: { run: () => void } = { run: () => {} };
  createContext(context);
  const script = new Script("run()");
  return (run, timeout) => {
    let thrown: { readonly error: unknown } | undefined;
    context.run = () => {
      try {
        run();
      } catch (error) {
        thrown = { error };
      }
    };
    try {
      script.runInContext(context, { timeout, displayErrors: false });
    } catch {
      // Only a timeout is caught here, because `context.run` catches all other errors.
      return false;
    }
    if (thrown !== undefined) throw thrown.error;
    return true;
  };
}

/**
 * Prepares checks for another server's rules, within limits. Refuses CEL, because 100 characters can fill the memory.
 *
 * @throws Error if a rule is refused, or if compiling the rules takes too long
 */
export function prepareLimited(
  rules: Rules,
  limit: TimeLimit,
  prepare: () => (type: DescMessage) => MessageCheck | undefined,
): (type: DescMessage) => MessageCheck | undefined {
  const [owner] = rules.expressions.values();
  if (owner !== undefined) throw refusalError(`${owner} has a rule in CEL`);
  if (rules.owners > maxOwners) throw refusalError(`more than ${maxOwners} fields and messages have rules`);
  if (rules.patternCharacters > maxPatternCharacters)
    throw refusalError(`their patterns have more than ${maxPatternCharacters} characters`);
  let checkOf: ReturnType<typeof prepare> | undefined;
  const isPrepared = limit(() => void (checkOf = prepare()), maxPrepareMs);
  if (!isPrepared) throw refusalError(`compiling them takes longer than ${maxPrepareMs} ms`);
  return (type) => {
    const check = checkOf?.(type);
    return (
      check &&
      ((message, context) => {
        const before = process.threadCpuUsage();
        for (let attempts = 1; !limit(() => check(message, context), maxCheckMs); attempts++) {
          const { user, system } = process.threadCpuUsage(before);
          if (attempts === maxAttempts || user + system > (maxCheckMs * 1000) / 2) throw timeLimitError();
        }
      })
    );
  };
}

function refusalError(reason: string): Error {
  return withCode(new Error(`the validation rules are not accepted from a server: ${reason}`), "ERR_DESCRIPTORS");
}

function timeLimitError(): Error {
  return problem("ERR_RULES_VIOLATED", `a validation rule cannot be evaluated: it takes longer than ${maxCheckMs} ms`);
}
