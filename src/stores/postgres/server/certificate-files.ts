import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readRegularFileSync } from "@plantstore/command-line";
import { StoreOpenError } from "../../contract/store-open-error.ts";

/** The database URL parameters that name PEM files. */
export const certificateParameters = ["sslrootcert", "sslcert", "sslkey"] as const;
/** One of {@link certificateParameters}. */
export type CertificateParameter = (typeof certificateParameters)[number];

/** The contents of the PEM files, as TLS options. */
export interface PemFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const optionNames: Readonly<Record<CertificateParameter, keyof PemFiles>> = {
  sslrootcert: "ca",
  sslcert: "cert",
  sslkey: "key",
};

/** Maximum bytes in a certificate file. 1 MiB: more than all of a system's authorities. */
export const pemBytesMax: number = 1024 * 1024;

/**
 * The certificates that a database URL names. They are read again for each connection, because authorities and client
 * certificates are rotated while a store is open.
 */
export class CertificateFiles {
  readonly #paths: ReadonlyMap<CertificateParameter, string>;
  #texts: readonly string[];
  #files: PemFiles;

  /** @throws StoreOpenError when the files cannot be read, or are not certificates and their key */
  constructor(paths: ReadonlyMap<CertificateParameter, string>) {
    this.#paths = paths;
    this.#texts = this.paths.map(readPem);
    this.#files = this.#parse(this.#texts);
  }

  get paths(): readonly string[] {
    return [...this.#paths.values()];
  }

  /** The contents of the files. While they cannot be used, the previous contents. */
  get current(): PemFiles {
    try {
      this.renew(this.paths.map(readPem));
    } catch (fault) {
      if (!(fault instanceof StoreOpenError)) throw fault;
    }
    return this.#files;
  }

  /**
   * Replaces the contents by new ones, in path order.
   *
   * @throws StoreOpenError when the new contents cannot be used, also if a certificate is expired or not valid yet, and
   * the current one is valid
   */
  renew(texts: readonly string[]): void {
    // Parsing takes a hundred times as long as reading.
    if (texts.every((text, i) => text === this.#texts[i])) return;
    const files = this.#parse(texts);
    for (const name of ["ca", "cert"] as const) {
      if (isValidNow(files[name]) || !isValidNow(this.#files[name])) continue;
      throw new StoreOpenError(`no certificate of ${this.#pathOf(name)} is valid at this time`);
    }
    this.#texts = texts;
    this.#files = files;
  }

  #parse(texts: readonly string[]): PemFiles {
    const names = [...this.#paths.keys()].map((parameter) => optionNames[parameter]);
    const files: PemFiles = Object.fromEntries(names.map((name, i) => [name, texts[i]]));
    this.#certificatesOf(files, "ca");
    const own = this.#certificatesOf(files, "cert")?.[0];
    const { key } = files;
    if (own !== undefined && key !== undefined && !own.checkPrivateKey(this.#privateKeyOf(key)))
      throw new StoreOpenError(`the key in ${this.#pathOf("key")} does not belong to ${this.#pathOf("cert")}`);
    return files;
  }

  #certificatesOf(files: PemFiles, name: "ca" | "cert"): readonly X509Certificate[] | undefined {
    const pem = files[name];
    if (pem === undefined) return undefined;
    const certificates = certificatesIn(pem);
    if (certificates !== undefined) return certificates;
    throw new StoreOpenError(`${this.#pathOf(name)} must contain certificates in PEM, and nothing incomplete`);
  }

  #privateKeyOf(pem: string): KeyObject {
    try {
      return createPrivateKey(pem);
    } catch (cause) {
      // Not the message, which is for programmers.
      throw new StoreOpenError(`${this.#pathOf("key")} must contain a private key in PEM, without a passphrase`, {
        cause,
      });
    }
  }

  #pathOf(name: keyof PemFiles): string | undefined {
    return [...this.#paths].find(([parameter]) => optionNames[parameter] === name)?.[1];
  }
}

function readPem(path: string): string {
  try {
    return readRegularFileSync(path, pemBytesMax).toString("utf8");
  } catch (fault) {
    throw new StoreOpenError(`cannot read ${path}, which is named in the database URL`, { cause: fault });
  }
}

/** Returns the certificates in a text in PEM, or `undefined` if there is none, or any is incomplete. */
function certificatesIn(pem: string): readonly X509Certificate[] | undefined {
  const blocks = pem.split(/(?=-----BEGIN )/).slice(pem.startsWith("-----BEGIN ") ? 0 : 1);
  // A file that is being written may end anywhere. A client's file may contain its key, too.
  if (!blocks.every((block) => /-----END [A-Z0-9 ]+-----/.test(block))) return undefined;
  const certificates = blocks.filter((block) => /^-----BEGIN (?:X509 )?CERTIFICATE-----/.test(block));
  try {
    return certificates.length === 0 ? undefined : certificates.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** Returns whether any certificate is valid now. The first one in a client's file is its own. */
function isValidNow(pem: string | undefined): boolean {
  const nowMs = Date.now();
  const certificates = pem === undefined ? [] : (certificatesIn(pem) ?? []);
  return certificates.some(
    ({ validFromDate, validToDate }) => validFromDate.getTime() <= nowMs && nowMs <= validToDate.getTime(),
  );
}
