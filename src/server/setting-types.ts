import { accessSync, constants } from "node:fs";
import { isIP } from "node:net";
import { explainSystemError } from "@protoport/auth/inputs";
import type { MembersOf, Setting, SettingType } from "@protoport/command-line/settings";
import { formatted, isOrigin, quote, text } from "@protoport/command-line/settings";
import { isAddressOrNetwork } from "@protoport/gateway";

/** A setting of the plant store. docs/reference/configuration.md has a row for each setting. */
export interface PlantSetting extends Setting {
  /** The title of the setting's group in `--help`. Only the group's first setting has a title. */
  readonly title?: string;
  /** The environment variable. {@link flagOf} derives the flag from the variable. */
  readonly variable: string;
  /** The value if neither the variable nor the flag is set. */
  readonly fallback?: string | number | readonly string[];
  /** Set if messages must not contain the value. A function returns the public part. "hidden" hides the whole value. */
  readonly secret?: ((text: string) => string) | "hidden";
}

/** The settings for an object's members. */
export type PlantSettings<T> = MembersOf<T> & { readonly [Name in keyof T]: PlantSetting };

/** Returns a setting's default as text, if any. */
export function defaultText({ fallback }: PlantSetting): string | undefined {
  return fallback === undefined ? undefined : String(fallback);
}

/** The prefix of variables that belong only to this project. */
export const variablePrefix = "PLANTSTORE_";

/** Returns a variable's name without the {@link variablePrefix}, if any. */
export function variableWithoutPrefix(variable: string): string {
  return variable.startsWith(variablePrefix) ? variable.slice(variablePrefix.length) : variable;
}

/**
 * A setting's flag: the variable's name without prefix, in lower case. Hidden settings have no flag, because process
 * lists show flags.
 */
export function flagOf({ variable, secret }: PlantSetting): string | undefined {
  return secret === "hidden" ? undefined : variableWithoutPrefix(variable).toLowerCase().replaceAll("_", "-");
}

/** Returns words as alternatives for a sentence, such as "a, b or c". */
export function alternatives(words: readonly string[]): string {
  return [...words.slice(0, -2), words.slice(-2).join(" or ")].join(", ");
}

/** A path to a file that is readable when the server starts. */
export const readableFile: SettingType<string> = text("path", (path) => {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch (reason) {
    throw new Error(`must be a readable file (${explainSystemError(reason)}), got ${quote(path)}`, { cause: reason });
  }
});

/**
 * Text with values that are separated by commas.
 *
 * @param format - what the text must be, for messages
 * @param read - returns an item's value, or `undefined` for an invalid item
 */
export function commaSeparated<T>(format: string, read: (item: string) => T | undefined): SettingType<readonly T[]> {
  return formatted("list", format, (given) => {
    const items = given.split(",").map((item) => read(item.trim()));
    const valid = items.filter((item) => item !== undefined);
    return valid.length === items.length ? valid : undefined;
  });
}

/** Returns the host for a connection to a server. Replaces the unspecified address with a loopback address. */
export function toConnectHost(host: string): string {
  return { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
}

/** The prefix of a `HOST` for a Unix socket. */
const unixPrefix = "unix:";

/** Maximum length of a Unix socket path, in bytes. Linux's `sun_path` has one more byte, for a zero (unix(7)). */
const maxSocketPathBytes = 107;

/** `HOST`, which is an IP address, a host name, or `unix:` and a socket's path. */
export const hostType: SettingType<string> = formatted(
  "address",
  `an IP address, a host name, or unix: followed by a path of at most ${maxSocketPathBytes} bytes`,
  (host) => {
    const isHost = socketPathOf(host) === undefined && /^[A-Za-z0-9.:_%-]+$/.test(host) && !isBrokenAddress(host);
    return isHost || isSocket(host) ? host : undefined;
  },
);

/** Returns whether a host consists of `unix:` and a path with a valid length. */
function isSocket(host: string): boolean {
  const path = socketPathOf(host);
  return path !== undefined && path !== "" && Buffer.byteLength(path) <= maxSocketPathBytes;
}

// Text such as `999.1.1.1` would otherwise be looked up in DNS.
function isBrokenAddress(host: string): boolean {
  return (host.includes(":") || /(?:^|\.)[0-9]+$/.test(host)) && isIP(host) === 0;
}

/** Returns the path in a `HOST` for a Unix socket. Returns `undefined` for any other host. */
export function socketPathOf(host: string): string | undefined {
  return host.startsWith(unixPrefix) ? host.slice(unixPrefix.length) : undefined;
}

/** A file mode such as `660`. */
export const fileMode: SettingType<string> = formatted(
  "file mode",
  "a file mode of three octal digits, such as 660",
  (mode) => (/^0?[0-7]{3}$/.test(mode) ? mode : undefined),
);

/** IP addresses, networks such as `10.0.0.0/8`, and `unix:`. */
export const addresses: SettingType<readonly string[]> = commaSeparated(
  "a comma-separated list of IP addresses, networks such as 10.0.0.0/8, or unix:",
  (entry) => (isAddressOrNetwork(entry) ? entry : undefined),
);

/** Origins whose pages may send requests, or `*` for all origins. */
export const corsOrigins: SettingType<readonly string[] | "*"> = formatted(
  "list",
  "* or a comma-separated list of origins such as https://shop.example",
  (given) => {
    const origins = given.split(",").map((origin) => origin.trim());
    return given === "*" ? "*" : origins.every(isOrigin) ? origins : undefined;
  },
);

/** The address for the operator's tools, separate from the service's address. */
export interface AdminAddress {
  /** A host, or `unix:` and a socket's path. */
  readonly host: string;
  /** The port. 0 selects a free port. The port of a socket is always 0. */
  readonly port: number;
}

/** An admin address, such as `9464`, `0.0.0.0:9464`, `[::1]:9464` or `unix:/run/plantstore/admin.sock`. */
export const adminAddressType: SettingType<AdminAddress> = formatted(
  "address",
  "a port, a host and port such as 127.0.0.1:9464, or unix: followed by the path of a socket",
  (given) => {
    if (isSocket(given)) return { host: given, port: 0 };
    const [, inBrackets, name, digits] =
      /^(?:(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9.-]+)):)?(\d{1,5})$/.exec(given) ?? [];
    const port = Number(digits);
    const host = inBrackets ?? name ?? "127.0.0.1";
    return digits === undefined || port > 65_535 || isBrokenAddress(host) ? undefined : { host, port };
  },
);
