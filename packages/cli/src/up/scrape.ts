// shell: one HTTP request
/** The value of a metric without labels, from the endpoint that a ready line names. */
export async function scrape(listens: string, metric: string): Promise<number | undefined> {
  const url = /https?:\/\/[^\s,]+\/metrics/.exec(listens)?.[0];
  if (url === undefined) return undefined;
  try {
    const response = await fetch(url);
    const line = new RegExp(`^${metric} (\\S+)$`, 'm').exec(await response.text());
    return line === null ? undefined : Number(line[1]);
  } catch (error) {
    // The child is being restarted: its supervisor reports that, and the next poll asks again.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
