/** The flags of node that the image, the unit and `npm start` run `plantstore serve` with. */
export const plantStoreFlags: readonly string[] = ["--no-allocation-site-pretenuring"];
