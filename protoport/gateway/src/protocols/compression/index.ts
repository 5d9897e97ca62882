/**
 * The compressions that a gateway on node offers. This module is separate because the protocols look up compressions by
 * name, and also run where zlib is not available.
 */
export { brotli, gzip, zstd } from "./compressions.ts";
