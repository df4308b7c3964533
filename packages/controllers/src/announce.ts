/** An event about an object, as controllers tell it; the shell posts it. */
export type Announce = (
  kind: string,
  namespace: string,
  name: string,
  type: 'Normal' | 'Warning',
  reason: string,
  message: string,
  uid?: string,
) => void;
