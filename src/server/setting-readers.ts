import { accessSync, constants } from "node:fs";
import { isIP } from "node:net";
import { explainSystemError, withProblems, parsed, type ParseResult } from "@plantstore/auth/inputs";
import { isAddressOrNetwork } from "@plantstore/gateway";

/** A setting. docs/reference/configuration.md has a row for each setting. */
export interface Setting<T> {
  /** The title of the setting's group in `--help`. Only the group's first setting has a title. */
  readonly title?: string;
  /** The environment variable. {@link flagOf} derives the flag from the variable. */
  readonly variable: string;
  /** A short description for `--help`. */
  readonly help: string;
  /** The default value, if neither the variable nor the flag is set. */
  readonly fallback?: string;
  /** Set if messages must not contain the value. A function returns the public part. "hidden" hides the whole value. */
  readonly secret?: ((text: string) => string) | "hidden";
  /** Parses the text. A problem follows "must" in the message, such as "be a port". */
  readonly read: (text: string) => ParseResult<T>;
}

/** The prefix of variables that belong only to this project. */
export const variablePrefix = "PLANTSTORE_";

/** Returns a variable's name without the {@link variablePrefix}, if any. */
export function withoutPrefix(variable: string): string {
  return variable.startsWith(variablePrefix) ? variable.slice(variablePrefix.length) : variable;
}

/**
 * A setting's flag: the variable's name without prefix, in lower case. Hidden settings have no flag, because process
 * lists show flags.
 */
export function flagOf({ variable, secret }: Setting<unknown>): string | undefined {
  return secret === "hidden" ? undefined : withoutPrefix(variable).toLowerCase().replaceAll("_", "-");
}

/** Returns a reader for decimal integers in an inclusive range. */
export function integerBetween(least: number, most: number, unit: string = ""): (text: string) => ParseResult<number> {
  const requirement = `be an integer between ${least} and ${most}${unit && ` (${unit})`}`;
  return (text) => {
    // Uses a pattern, because Number() would also accept "", " 7", "0x7" and "1e3".
    const number = /^(0|[1-9][0-9]*)$/.test(text) ? Number(text) : Number.NaN;
    return number >= least && number <= most ? parsed(number) : withProblems(requirement);
  };
}

/** Returns a reader that accepts any of these words. */
export function oneOf<T extends string>(words: readonly T[]): (text: string) => ParseResult<T> {
  return (text) => {
    const accepted = words.find((candidate) => candidate === text);
    return accepted === undefined
      ? withProblems(`be ${words.length > 2 ? "one of " : ""}${alternatives(words)}`)
      : parsed(accepted);
  };
}

/** Returns words as alternatives for a sentence, such as "a, b or c". */
export function alternatives(words: readonly string[]): string {
  return [...words.slice(0, -2), words.slice(-2).join(" or ")].join(", ");
}

/** Reads the path to a file. The file must be readable when the server starts. */
export function readableFile(text: string): ParseResult<string> {
  try {
    accessSync(text, constants.R_OK);
    return parsed(text);
  } catch (reason) {
    return withProblems(`be a readable file (${explainSystemError(reason)})`);
  }
}

/** The prefix of a `HOST` for a Unix socket. */
const unixPrefix = "unix:";

/** Maximum length of a Unix socket path, in bytes. Linux's `sun_path` has one more byte, for a zero (unix(7)). */
const socketPathBytesMax = 107;

/** Reads `HOST`, which is an IP address, a host name, or `unix:` and a socket's path. */
export function readHost(text: string): ParseResult<string> {
  if (isSocket(text)) return parsed(text);
  const isHost = socketPathOf(text) === undefined && /^[A-Za-z0-9.:_%-]+$/.test(text) && !isBrokenAddress(text);
  return isHost
    ? parsed(text)
    : withProblems(`be an IP address, a host name, or unix: followed by a path of at most ${socketPathBytesMax} bytes`);
}

/** Returns whether a text consists of `unix:` and a path with a valid length. */
function isSocket(text: string): boolean {
  const path = socketPathOf(text);
  return path !== undefined && path !== "" && Buffer.byteLength(path) <= socketPathBytesMax;
}

// Text such as `999.1.1.1` would otherwise be looked up in DNS.
function isBrokenAddress(text: string): boolean {
  return (text.includes(":") || /(?:^|\.)[0-9]+$/.test(text)) && isIP(text) === 0;
}

/** Returns the path in a `HOST` for a Unix socket. Returns `undefined` for any other host. */
export function socketPathOf(host: string): string | undefined {
  return host.startsWith(unixPrefix) ? host.slice(unixPrefix.length) : undefined;
}

/** Reads a file mode such as `660`. */
export function readFileMode(text: string): ParseResult<number> {
  return /^0?[0-7]{3}$/.test(text)
    ? parsed(Number.parseInt(text, 8))
    : withProblems("be a file mode of three octal digits, such as 660");
}

/** Reads comma-separated IP addresses, networks such as `10.0.0.0/8`, and `unix:`. */
export function readAddresses(text: string): ParseResult<readonly string[]> {
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.every(isAddressOrNetwork)
    ? parsed(entries)
    : withProblems("be a comma-separated list of IP addresses, networks such as 10.0.0.0/8, or unix:");
}

/**
 * Reads comma-separated origins, or `*` for all origins. Pages from these origins may send requests.
 *
 * An origin with a path or capitals is refused, because browsers never send one (RFC 6454 §6.2).
 */
export function readCorsOrigins(text: string): ParseResult<readonly string[] | "*"> {
  if (text === "*") return parsed("*");
  const origins = text.split(",").map((origin) => origin.trim());
  const invalid = origins.find((origin) => !URL.canParse(origin) || new URL(origin).origin !== origin);
  return invalid === undefined
    ? parsed(origins)
    : withProblems("be * or a comma-separated list of origins such as https://shop.example");
}

/** The address for the operator's tools, separate from the service's address. */
export interface AdminAddress {
  /** A host, or `unix:` and a socket's path. */
  readonly host: string;
  /** The port. 0 selects a free port. The port of a socket is always 0. */
  readonly port: number;
}

/** Reads an admin address, such as `9464`, `0.0.0.0:9464`, `[::1]:9464` or `unix:/run/plantstore/admin.sock`. */
export function readAdminAddress(text: string): ParseResult<AdminAddress> {
  if (isSocket(text)) return parsed({ host: text, port: 0 });
  const [, inBrackets, name, digits] = /^(?:(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9.-]+)):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = inBrackets ?? name ?? "127.0.0.1";
  if (digits === undefined || port > 65_535 || isBrokenAddress(host))
    return withProblems("be a port, a host and port such as 127.0.0.1:9464, or unix: followed by the path of a socket");
  return parsed({ host, port });
}

/**
 * Reads `PLANTSTORE_PUBLIC_URL`, the base URL that clients use.
 *
 * The URL's path is the prefix for all paths. The URL must not contain a query, a fragment or credentials.
 */
export function readPublicUrl(text: string): ParseResult<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === undefined || !isHttp) return withProblems("be an http or https URL");
  if (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    return withProblems("be a URL without a query, fragment or credentials");
  }
  return parsed(url);
}
