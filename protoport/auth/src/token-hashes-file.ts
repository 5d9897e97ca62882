import type { Stats } from "node:fs";
import { open, realpath, rename, stat, unlink, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

import { withProblems, parsed, type ParseResult, readTextFile, toProblem } from "./inputs/index.ts";
import type { StaticToken } from "./static-token.ts";
import { formatTokenHash, parseTokenHashes, removeToken } from "./token-hashes.ts";

/** Maximum size of a file of token hashes, in bytes. 4 MiB hold 35,000 tokens and block the event loop for 0.2 s. */
export const tokenHashesFileLimitBytes: number = 4 * 1024 * 1024;

/** Only the owner gets access to a new file. Anyone who can write the file can create tokens. */
const tokenHashesFileMode = 0o600;

/** The permissions that a replaced file keeps. Hashes reveal nothing, so others may read the file. */
const keptMode = 0o044;

/**
 * Adds a token to a file of token hashes. Creates a missing file, which only its owner can read. The file is replaced
 * atomically, so that readers get the old or the new file, even after a power failure. The file keeps its owner, group
 * and read permissions, because a server may run as another user. Of two concurrent changes, the second is rejected and
 * can be repeated. A change is also rejected if the file contains an invalid line or a token with the same name.
 */
export async function appendTokenHash(path: string, token: StaticToken): Promise<ParseResult<void>> {
  return await editFile(path, (text) => {
    const textBefore = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    return parsed(`${textBefore}${formatTokenHash(token)}\n`);
  });
}

/**
 * Removes a token's line from a file of token hashes, atomically as in {@link appendTokenHash}. Returns a problem if
 * the file is invalid or no token has this name.
 */
export async function revokeToken(path: string, name: string): Promise<ParseResult<void>> {
  return await editFile(path, (text) => removeToken(text, name));
}

/** Returns the tokens in a file of token hashes, in their order. */
export async function listTokens(path: string): Promise<ParseResult<readonly StaticToken[]>> {
  const text = await readTextFile(path, tokenHashesFileLimitBytes);
  return text.kind === "problems" ? text : parseTokenHashes(text.value);
}

type FileChange = (text: string) => ParseResult<string>;

async function editFile(path: string, change: FileChange): Promise<ParseResult<void>> {
  // If the path is a symbolic link, its target is replaced.
  const target = await realpath(path).catch(() => path);
  // The new file is also the lock: it is created before the old file is read, and then renamed over the old file.
  const replacement = `${target}.lock`;
  const file = await create(replacement);
  if (file.kind === "problems") return file;
  const replaced = await replace(target, replacement, file.value, change).catch(toProblem);
  if (replaced.kind === "value") return await syncFolder(dirname(target)).catch(toProblem);
  await unlink(replacement).catch(toProblem);
  return replaced;
}

async function create(path: string): Promise<ParseResult<FileHandle>> {
  try {
    return parsed(await open(path, "wx", tokenHashesFileMode));
  } catch (error) {
    if (!hasCode(error, "EEXIST")) return toProblem(error);
    return withProblems(`${path} exists: another process is changing the tokens; if none is, delete this file`);
  }
}

async function replace(
  target: string,
  replacement: string,
  file: FileHandle,
  change: FileChange,
): Promise<ParseResult<void>> {
  await using closing = file;
  // Only a missing file is read as empty, because an unreadable file must not be replaced.
  const old = await findStats(target);
  const text = old === undefined ? parsed("") : await readTextFile(target, tokenHashesFileLimitBytes);
  if (text.kind === "problems") return text;
  const newText = change(text.value);
  if (newText.kind === "problems") return newText;
  const tokens = parseTokenHashes(newText.value);
  if (tokens.kind === "problems") return tokens;
  // Equivalent mutant: if the check follows the write, `editFile` removes the file that is too large.
  if (Buffer.byteLength(newText.value) > tokenHashesFileLimitBytes) {
    return withProblems(`${target} would be larger than the limit of ${tokenHashesFileLimitBytes} bytes`);
  }
  if (old !== undefined) await keepAccess(closing, old);
  await closing.writeFile(newText.value);
  // Without a sync before the rename, a power failure may leave an empty file under the final name.
  await closing.sync();
  await rename(replacement, target);
  return parsed(undefined);
}

/** Returns a file's status, or `undefined` if the file is missing. */
async function findStats(path: string): Promise<Stats | undefined> {
  return await stat(path).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
}

/** Gives a new file the owner, group and read permissions of the file that it replaces. */
async function keepAccess(file: FileHandle, old: Stats): Promise<void> {
  await file.chown(old.uid, old.gid);
  await file.chmod(tokenHashesFileMode | (old.mode & keptMode));
}

// A rename is durable only after the folder is synced.
async function syncFolder(path: string): Promise<ParseResult<void>> {
  await using folder = await open(path, "r");
  await folder.sync();
  return parsed(undefined);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
