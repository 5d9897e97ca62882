// Photos in a folder: uploads and downloads of any size with little memory, including ranges and conditional requests,
// which handlers implement themselves.
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { randomUUID } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { PhotoService, type UploadPhotoRequest } from "../gen/greenhouse/v1/photos_pb.ts";

/** Returns the routes of the photos in a folder. */
export function photosIn(folder: string): (router: ConnectRouter) => void {
  return (router) =>
    router.service(PhotoService, {
      async uploadPhoto(pieces, { responseHeader }) {
        // Under another name first, so that no client gets an incomplete photo.
        const part = join(folder, `${randomUUID()}.part`);
        try {
          const photo = await save(pieces, part);
          await rename(part, fileOf(folder, photo.name));
          responseHeader.set("status", "201");
          return photo;
        } finally {
          await rm(part, { force: true });
        }
      },

      async *downloadPhoto({ name }, context) {
        await using file = await openPhoto(fileOf(folder, name));
        const range = await negotiate(file, context);
        if (range === undefined) return;
        for await (const data of file.createReadStream({ ...range, autoClose: false })) {
          yield { contentType: "image/jpeg", data };
        }
      },
    });
}

/** Writes the parts of a photo to a file. Throws if the client disconnects before the last one. */
async function save(pieces: AsyncIterable<UploadPhotoRequest>, path: string): Promise<{ name: string; bytes: bigint }> {
  const photo = { name: "", bytes: 0n };
  await using file = await open(path, "wx");
  for await (const { name, data } of pieces) {
    photo.name ||= requireName(name);
    const bytes = data?.data ?? Buffer.of();
    await file.writeFile(bytes);
    photo.bytes += BigInt(bytes.byteLength);
  }
  return photo;
}

function fileOf(folder: string, name: string): string {
  return join(folder, `${requireName(name)}.jpg`);
}

// A slash or a dot in the name of a client could lead to another path.
function requireName(name: string): string {
  if (/^[a-z0-9-]{1,64}$/.test(name)) return name;
  throw new ConnectError("the name must be 1 to 64 lowercase letters, digits or hyphens", Code.InvalidArgument);
}

async function openPhoto(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch {
    throw new ConnectError("photo not found", Code.NotFound);
  }
}

/** The first and the last byte of the response. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Sets the status of a download, and returns the range to send; `undefined` for an empty body. */
async function negotiate(file: FileHandle, context: HandlerContext): Promise<Range | undefined> {
  const { requestHeader, responseHeader } = context;
  const { size, mtimeMs } = await file.stat();
  const etag = `"${Math.trunc(mtimeMs).toString(36)}-${size.toString(36)}"`;
  responseHeader.set("etag", etag);
  responseHeader.set("accept-ranges", "bytes");
  // RFC 9110 §13.2.2: If-None-Match before If-Range before Range.
  if (requestHeader.get("if-none-match")?.includes(etag) === true) {
    responseHeader.set("status", "304");
    return undefined;
  }
  const isCurrent = (requestHeader.get("if-range") ?? etag) === etag;
  const range = isCurrent ? readRange(requestHeader.get("range"), size) : undefined;
  if (range !== undefined && range.start > range.end) {
    responseHeader.set("status", "416");
    responseHeader.set("content-range", `bytes */${size}`);
    throw new ConnectError(`the photo has ${size} bytes`, Code.OutOfRange);
  }
  if (range !== undefined) {
    responseHeader.set("status", "206");
    responseHeader.set("content-range", `bytes ${range.start}-${range.end}/${size}`);
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  responseHeader.set("content-length", String(end - start + 1));
  return size === 0 ? undefined : { start, end };
}

/**
 * Parses a Range field with a single range (RFC 9110 §14.1.2). Ignores any other, as §14.2 allows.
 *
 * @returns `undefined` for the complete photo; a range whose end is before its start if it is after the last byte
 */
function readRange(field: string | null, size: number): Range | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(field ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  // A suffix range: the last bytes.
  if (first === "") return { start: last === "0" ? size : Math.max(0, size - Number(last)), end: size - 1 };
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return { start: Number(first), end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
