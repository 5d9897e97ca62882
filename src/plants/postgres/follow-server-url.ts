import { readFileSync, statSync } from "node:fs";
import { StoreOpenError } from "../store-open-error.ts";
import { type Host, readServerUrl, type Server } from "./server-url.ts";

// Bytes: a file that was named by mistake, such as a disk image, is kept out of memory.
const fileBytesMax = 4_096;

/**
 * Returns the URL of a server that a file contains; a line break behind it is ignored.
 *
 * @throws StoreOpenError naming the file, and nothing that is in it
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
 * Returns the server whose URL is in a file. The file is read again for each connection, so that a password can be
 * changed while a server runs. A file that cannot be used, as while it is written, changes nothing.
 *
 * @throws StoreOpenError when the file cannot be used now
 */
export function followServerUrl(file: string): Server {
  return new FollowedServer(file);
}

class FollowedServer implements Server {
  readonly #file: string;
  #current: Server;

  constructor(file: string) {
    this.#file = file;
    this.#current = readServerUrl(readServerUrlFile(file));
  }

  get name(): string {
    return this.#current.name;
  }

  get mustBeWritable(): boolean {
    return this.#current.mustBeWritable;
  }

  get hosts(): readonly Host[] {
    try {
      this.#current = readServerUrl(readServerUrlFile(this.#file));
    } catch {
      // The last one stays.
    }
    return this.#current.hosts;
  }
}
