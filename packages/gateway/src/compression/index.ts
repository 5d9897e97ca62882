/**
 * The compressions that a gateway on node offers. Separate from the protocols, which look up a compression by its name
 * and also run where zlib is not available.
 */
export { brotli, gzip, zstd } from "./compressions.ts";
