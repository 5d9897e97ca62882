import { access, open, realpath, rename, unlink, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

import { parsed, unparsed, type Parsed } from "./parsed.ts";
import type { StaticToken } from "./static-token.ts";
import { readTextFile, toProblem } from "./text-file.ts";
import { formatTokenHash, parseTokenHashes } from "./token-hashes.ts";

/**
 * The largest file of token hashes that is read, in bytes.
 *
 * 4 MiB are 35,000 tokens, which take a fifth of a second to read: calls wait for that when the file changes.
 */
export const tokenHashesFileLimitBytes: number = 4 * 1024 * 1024;

/** Owner only: hashes of 256-bit tokens tell nothing, but whoever may write here can make tokens. */
const tokenHashesFileMode = 0o600;

/**
 * Adds a token to a file of token hashes, which is made, for its owner only, when it is not there.
 *
 * The file is replaced as a whole: a server that reads it meanwhile sees the old or the new one, and a
 * power cut leaves one of them. Two that add at a time cannot lose each other's line: the second is told
 * to repeat. Also refused when the file has a bad line, or a token of this name.
 */
export async function appendTokenHash(path: string, token: StaticToken): Promise<Parsed<void>> {
  // The file itself is replaced, not a symbolic link to it.
  const target = await realpath(path).catch(() => path);
  // The replacement is the lock as well: it is there as long as somebody is between reading and renaming.
  const replacement = `${target}.lock`;
  const file = await create(replacement);
  if (file.kind === "problems") return file;
  const written = await writeReplacement(file.value, target, token).catch(toProblem);
  if (written.kind === "problems") {
    await unlink(replacement).catch(toProblem);
    return written;
  }
  return await putInPlace(replacement, target).catch(toProblem);
}

async function create(path: string): Promise<Parsed<FileHandle>> {
  try {
    return parsed(await open(path, "wx", tokenHashesFileMode));
  } catch (error) {
    if (!hasCode(error, "EEXIST")) return toProblem(error);
    return unparsed(
      `${path} exists: another token is being added, or adding one was cut short (then delete that file)`,
    );
  }
}

async function writeReplacement(file: FileHandle, target: string, token: StaticToken): Promise<Parsed<void>> {
  await using closing = file;
  const text = await readIfThere(target);
  if (text.kind === "problems") return text;
  const before = text.value === "" || text.value.endsWith("\n") ? text.value : `${text.value}\n`;
  const after = `${before}${formatTokenHash(token)}\n`;
  const tokens = parseTokenHashes(after);
  if (tokens.kind === "problems") return tokens;
  if (Buffer.byteLength(after) > tokenHashesFileLimitBytes) {
    return unparsed(`${target} would be larger than the ${tokenHashesFileLimitBytes} bytes that are read`);
  }
  await closing.writeFile(after);
  await closing.sync();
  return parsed(undefined);
}

async function readIfThere(path: string): Promise<Parsed<string>> {
  const isMissing = await access(path).then(
    () => false,
    (error: unknown) => hasCode(error, "ENOENT"),
  );
  return isMissing ? parsed("") : await readTextFile(path, tokenHashesFileLimitBytes);
}

async function putInPlace(replacement: string, target: string): Promise<Parsed<void>> {
  await rename(replacement, target);
  // The new name is durable only with its directory.
  await using directory = await open(dirname(target), "r");
  await directory.sync();
  return parsed(undefined);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
