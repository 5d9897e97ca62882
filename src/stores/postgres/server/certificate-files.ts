import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { pemBytesMax, readRegularFileSync, validityProblem } from "@plantstore/command-line";
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

/** The certificate files in a database URL, read again for each connection, because certificates are rotated. */
export class CertificateFiles {
  readonly #paths: ReadonlyMap<CertificateParameter, string>;
  #texts: readonly string[];
  #files: PemFiles;

  /** @throws StoreOpenError if a file cannot be read or is invalid, or if the key does not belong to the certificate */
  constructor(paths: ReadonlyMap<CertificateParameter, string>) {
    this.#paths = paths;
    this.#texts = this.paths.map(readPem);
    this.#files = this.#parse(this.#texts);
  }

  get paths(): readonly string[] {
    return [...this.#paths.values()];
  }

  /** The files' current contents. If the current contents are unusable, the previous contents. */
  get current(): PemFiles {
    try {
      this.renew(this.paths.map(readPem));
    } catch (fault) {
      if (!(fault instanceof StoreOpenError)) throw fault;
    }
    return this.#files;
  }

  /**
   * Replaces the contents with `texts`, in the order of `paths`.
   *
   * @throws StoreOpenError if `texts` are unusable, or would replace a valid certificate with an expired or future one
   */
  renew(texts: readonly string[]): void {
    // Does not parse unchanged files, because parsing takes a hundred times as long as reading.
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
      // Does not contain the message of `cause`, which is for programmers.
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

function certificatesIn(pem: string): readonly X509Certificate[] | undefined {
  const blocks = pem.split(/(?=-----BEGIN )/).slice(pem.startsWith("-----BEGIN ") ? 0 : 1);
  // Another program may still be writing the file. A client's certificate file may also contain the key.
  if (!blocks.every((block) => /-----END [A-Z0-9 ]+-----/.test(block))) return undefined;
  const certificates = blocks.filter((block) => /^-----BEGIN (?:X509 )?CERTIFICATE-----/.test(block));
  try {
    return certificates.length === 0 ? undefined : certificates.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

function isValidNow(pem: string | undefined): boolean {
  const certificates = pem === undefined ? [] : (certificatesIn(pem) ?? []);
  return certificates.some((certificate) => validityProblem(certificate) === undefined);
}
