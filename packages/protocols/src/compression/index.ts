/**
 * The compressions that a gateway on node offers. A separate module, because the protocols look up a compression by its
 * name and also run where zlib is not available.
 */
export { brotli, gzip, zstd } from "./compressions.ts";
