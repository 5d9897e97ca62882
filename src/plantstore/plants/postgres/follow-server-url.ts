import { readFileSync, statSync } from "node:fs";
import { StoreOpenError } from "../store-open-error.ts";
import { parseUrl } from "./parse-url.ts";
import { type Host, readServerUrl, type Server } from "./server-url.ts";

// The largest file that is read, in bytes, which keeps a file that was named by mistake, such as a disk image, out of
// memory.
const fileBytesMax = 4_096;

/**
 * Returns the URL of a server that a file contains; a line break at its end is ignored.
 *
 * @throws StoreOpenError naming the file, but nothing of its content
 */
export function readServerUrlFile(file: string): string {
  try {
    const stats = statSync(file);
    if (!stats.isFile() || stats.size > fileBytesMax) throw new Error(`it is no file of up to ${fileBytesMax} bytes`);
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (fault) {
    const why = fault instanceof Error ? fault.message : String(fault);
    throw new StoreOpenError(`cannot read ${file}: ${why}`, { cause: fault });
  }
}

/**
 * Returns the server of a URL that was read from a file. The file is read again for each connection, so that user and
 * password can be changed while a server runs. A file that cannot be used, or whose URL differs in anything else,
 * changes nothing: the beginning of a half-written URL may be the URL of another database.
 *
 * @throws StoreOpenError when the URL cannot be used
 */
export function followServerUrl(url: string, file: string): Server {
  return new FollowedServer(url, file);
}

class FollowedServer implements Server {
  readonly #file: string;
  readonly #target: string;
  #current: Server;

  constructor(url: string, file: string) {
    this.#file = file;
    this.#target = targetOf(url);
    this.#current = readServerUrl(url);
  }

  get name(): string {
    return this.#current.name;
  }

  get mustBeWritable(): boolean {
    return this.#current.mustBeWritable;
  }

  get hosts(): readonly Host[] {
    try {
      const url = readServerUrlFile(this.#file);
      if (targetOf(url) === this.#target) this.#current = readServerUrl(url);
    } catch {
      // The last URL stays in use.
    }
    return this.#current.hosts;
  }
}

/** Returns everything in a URL except user and password, as a text to compare. */
function targetOf(url: string): string {
  const { user, hosts, database, parameters } = parseUrl(url);
  const others = [...parameters].filter(([name]) => name !== "user" && name !== "password");
  // A database that is not named has the name of the user.
  const named = parameters.get("dbname") ?? database;
  return JSON.stringify([hosts, database, others, named || (parameters.get("user") ?? user)]);
}
