// Orders of lists.

/** The list with the element at `from` at `to` instead; places past an end are that end. */
export function moved(list, from, to) {
  const rest = list.toSpliced(from, 1);
  return rest.toSpliced(Math.max(0, Math.min(to, rest.length)), 0, list[from]);
}

/** In a random order that differs from the list's, where there is one. `random` gives numbers in [0, 1). */
export function shuffled(list, random = Math.random) {
  const result = [...list];
  for (let last = result.length - 1; last > 0; --last) {
    const at = Math.floor(random() * (last + 1));
    [result[last], result[at]] = [result[at], result[last]];
  }
  const same = result.every((element, i) => element === list[i]);
  return same && result.length > 1 ? moved(result, 0, 1) : result;
}

/** Where the key that was pressed on an element at `at` moves it; null for a key that does not. */
export function placeAfterKey(key, at, length) {
  const places = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: length - 1 };
  if (!Object.hasOwn(places, key)) return null;
  return Math.max(0, Math.min(places[key], length - 1));
}

/** "A" to "Z", then "AA" and so on. */
export function letterOf(number) {
  const letter = String.fromCharCode(65 + (number % 26));
  return number < 26 ? letter : letterOf(Math.floor(number / 26) - 1) + letter;
}
