const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");

/** Encodes a version 2 header with command and family. `content` is the addresses and TLVs. */
export function binaryHeader(command: number, family: number, content: Uint8Array, length?: number): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt8(command, 0);
  head.writeUInt8(family, 1);
  head.writeUInt16BE(length ?? content.byteLength, 2);
  return Buffer.concat([signature, head, content]);
}

/** The addresses for a connection from 203.0.113.7:47 to 192.0.2.9:443. */
export const ipv4Addresses: Buffer = Buffer.from([203, 0, 113, 7, 192, 0, 2, 9, 0, 47, 1, 187]);

const ipv6Hex = "20010db800000000000000000000000720010db8000000000000000000000009002f01bb";
/** The addresses for a connection from [2001:db8::7]:47 to [2001:db8::9]:443. */
export const ipv6Addresses: Buffer = Buffer.from(ipv6Hex, "hex");
