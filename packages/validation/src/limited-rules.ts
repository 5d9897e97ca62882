import type { DescMessage } from "@bufbuild/protobuf";
import { problem } from "@plantstore/protobuf";
import { withCode } from "@plantstore/http";
import type { MessageCheck } from "@plantstore/serve";
import type { Rules } from "./rules.ts";

/** Maximum fields, oneofs and messages with rules: more than APIs have, and compiled in less than a second. */
const ownersMax = 2000;
/** Maximum characters in all patterns. Compiling 1,000 characters takes up to 0.15 s. */
const patternCharactersMax = 10_000;
/** For compiling all rules: ten times as long as the most rules take. */
const prepareMsMax = 5000;
/**
 * For one message. A large message takes some milliseconds, and a container may be suspended for 100 ms to enforce its
 * CPU limit. Other calls wait meanwhile.
 */
const checkMsMax = 300;
/** For one message on a busy machine, which may not run this process for as long as that. */
const attemptsMax = 4;

/** Runs a function, and interrupts it after some milliseconds. Then returns `false`. */
export type TimeLimit = (run: () => void, timeoutMs: number) => boolean;

/**
 * Loads `node:vm`, which can interrupt a synchronous function: its watchdog terminates everything that a script calls.
 * The watchdog costs a thread, so about 0.15 ms, for each run.
 *
 * @throws Error on a platform without `node:vm`
 */
export function openTimeLimit(): TimeLimit {
  // Bundlers for browsers and workers fail at a `node:vm` import.
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
      // The function catches its own errors, so this is the timeout.
      return false;
    }
    if (thrown !== undefined) throw thrown.error;
    return true;
  };
}

/**
 * Prepares checks by rules that another server has sent: only standard rules, and not more than the limits. CEL is
 * refused because an expression with 100 characters can fill the memory within milliseconds.
 *
 * @throws Error if there are other rules, or if compiling them takes too long
 */
export function prepareLimited(
  rules: Rules,
  limit: TimeLimit,
  prepare: () => (type: DescMessage) => MessageCheck | undefined,
): (type: DescMessage) => MessageCheck | undefined {
  const [owner] = rules.expressions.values();
  if (owner !== undefined) throw refused(`${owner} has a rule in CEL`);
  if (rules.owners > ownersMax) throw refused(`more than ${ownersMax} fields and messages have rules`);
  if (rules.patternCharacters > patternCharactersMax)
    throw refused(`their patterns have more than ${patternCharactersMax} characters`);
  let checkOf: ReturnType<typeof prepare> | undefined;
  const isPrepared = limit(() => void (checkOf = prepare()), prepareMsMax);
  if (!isPrepared) throw refused(`compiling them takes longer than ${prepareMsMax} ms`);
  return (type) => {
    const check = checkOf?.(type);
    return (
      check &&
      ((message, context) => {
        const before = process.threadCpuUsage();
        for (let attempts = 1; !limit(() => check(message, context), checkMsMax); attempts++) {
          const { user, system } = process.threadCpuUsage(before);
          if (attempts === attemptsMax || user + system > (checkMsMax * 1000) / 2) throw tooSlow();
        }
      })
    );
  };
}

function refused(reason: string): Error {
  return withCode(new Error(`the validation rules are not accepted from a server: ${reason}`), "ERR_DESCRIPTORS");
}

function tooSlow(): Error {
  return problem("ERR_RULES_VIOLATED", `a validation rule cannot be evaluated: it takes longer than ${checkMsMax} ms`);
}
