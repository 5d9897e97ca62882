/** The node flags with which the image, the systemd unit and `npm start` run `plantstore serve`. */
export const plantStoreFlags: readonly string[] = ["--no-allocation-site-pretenuring"];
