import { tracingChannel } from "node:diagnostics_channel";
import type { DestinationStream, Logger, LoggerOptions, symbols as pinoSymbols } from "pino";

/** The names of pino's own symbols, under which a logger stores its settings. */
type PinoSymbols = typeof pinoSymbols;

/** The part of a logger that determines a line, apart from the level and the time. */
type LoggerState = Readonly<Record<symbol, unknown>>;

/** A hook of pino that may write a line instead of the `method` of pino. */
type LogMethod = NonNullable<NonNullable<LoggerOptions["hooks"]>["logMethod"]>;

let timeMs = Number.NaN;
let timeText = "";

/** Returns the member `time` of a line, with a leading comma. The text is kept for its millisecond. */
export function timeMember(): string {
  const now = Date.now();
  if (now !== timeMs) {
    timeMs = now;
    timeText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return timeText;
}

/**
 * Returns a hook that writes most lines with one call of `JSON.stringify`, in a third of the time that pino takes. The
 * lines have the same bytes as those of pino. pino writes a line with an error, with arguments for its message or with a
 * value whose JSON depends on its name, and the lines of a logger with more settings than `openLog` sets.
 *
 * @param destination - the destination of the logger that has the hook
 */
export function createLogMethod(symbols: PinoSymbols, destination: DestinationStream): LogMethod {
  const { chindingsSym, formattersSym, lsCacheSym, mixinSym, serializersSym, stringifiersSym, streamSym } = symbols;
  const { needsMetadataGsym, msgPrefixSym }: Readonly<Record<string, symbol>> = symbols;
  let root: LoggerState | undefined;
  const isPlain = (logger: LoggerState): boolean => {
    root ??= rootOf(logger, streamSym);
    return (
      logger[serializersSym] === root[serializersSym] &&
      logger[stringifiersSym] === root[stringifiersSym] &&
      logger[mixinSym] === undefined &&
      (msgPrefixSym === undefined || logger[msgPrefixSym] === undefined) &&
      (logger[formattersSym] as { readonly log?: unknown }).log === undefined
    );
  };
  // pino passes the line's data to a destination with metadata.
  const hasMetadata = (): boolean =>
    needsMetadataGsym !== undefined && (destination as unknown as LoggerState)[needsMetadataGsym] === true;
  return function logMethod(this: Logger, args, method, level): void {
    const logger = this as unknown as LoggerState;
    if (args.length === 2 && !lines.hasSubscribers && isPlain(logger) && !hasMetadata()) {
      const members = membersOf(args[0], args[1]);
      if (members !== undefined) {
        const start = (logger[lsCacheSym] as Readonly<Record<number, string>>)[level];
        return destination.write(`${start}${timeMember()}${String(logger[chindingsSym])}${members}}\n`);
      }
    }
    method.apply(this, args);
  };
}

/** The channel of tracers that observe each line of pino. */
const lines = tracingChannel("pino_asJson");

function rootOf(logger: LoggerState, streamSym: symbol): LoggerState {
  let root = logger;
  while (!Object.hasOwn(root, streamSym)) root = Object.getPrototypeOf(root) as LoggerState;
  return root;
}

/** Returns a line's members for `fields` and `msg`, or `undefined` if pino must write them. */
function membersOf(fields: unknown, msg: unknown): string | undefined {
  if (typeof msg !== "string" || typeof fields !== "object" || fields === null || fields instanceof Error)
    return undefined;
  // pino describes requests and responses of node.
  if ("toJSON" in fields || "headers" in fields || "setHeader" in fields) return undefined;
  for (const name in fields) {
    const value: unknown = (fields as Readonly<Record<string, unknown>>)[name];
    if (name === "err" || (typeof value === "object" && value !== null && "toJSON" in value)) return undefined;
  }
  let json: string;
  try {
    json = JSON.stringify(fields);
  } catch {
    return undefined;
  }
  if (!json.startsWith("{")) return undefined;
  const members = json === "{}" ? "" : `,${json.slice(1, -1)}`;
  const text = `${members},"msg":${JSON.stringify(msg)}`;
  // Before Node 25, pino does not escape lone surrogates in short strings.
  return text.includes("\\ud") ? undefined : text;
}
