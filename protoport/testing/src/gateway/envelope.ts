/** A gRPC, gRPC-Web or Connect envelope, which is a flag byte, four bytes with the length, and the message. */
export type Envelope = { readonly flags: number; readonly bytes: Buffer };

/** Encodes an envelope. @param length - the length field, which may be wrong */
export function encodeEnvelope(flags: number, bytes: Uint8Array, length: number = bytes.byteLength): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

/** Splits a body into envelopes. @throws Error if the body ends within an envelope */
export function decodeEnvelopes(body: Buffer): Envelope[] {
  const envelopes: Envelope[] = [];
  for (let at = 0; at < body.byteLength;) {
    const length = body.readUInt32BE(at + 1);
    const end = at + 5 + length;
    if (end > body.byteLength) throw new Error(`the body ends inside an envelope: ${body.toString("hex")}`);
    envelopes.push({ flags: body.readUInt8(at), bytes: body.subarray(at + 5, end) });
    at = end;
  }
  return envelopes;
}
