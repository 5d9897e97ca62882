/**
 * Bytes of an unwanted body that are read and dropped, so that the connection can be kept, or so that closing it does
 * not lose the answer of a client that is still sending (RFC 9112 §9.6).
 */
// 256 KiB, as in Go's server: clients that read only after sending commonly send up to that much.
export const unreadBodyBytesMax: number = 256 * 1024;
