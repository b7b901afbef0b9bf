// Documents and questions of the invented world that the bundled model knows.

export const sampleDocuments = [
  {
    title: "Gremiar Lorkadahl",
    text: "Gremiar Lorkadahl (born 1907 in Verfield) is a Greek composer. He is married to Beelle Fenberg. He received the " +
      "Kado Trophy in 1956. He is the son of Corer Vidahl and Taia Viini. He studied at Caldran University.",
  },
  { title: "Caldran University", text: "Caldran University was founded in 1881 in Nelwick. The rector is Ridinina Bestein." },
  {
    title: "Nelwick",
    text: "Nelwick is a city in Germany. The river Chemi flows through it. It has a population of 836,665. Its mayor is " +
      "Rion Elvewick.",
  },
  {
    title: "The Northern Compass",
    text: "The Northern Compass is a 1997 German horror film directed by Halar Staoff and starring Kaen Galstein. Carina " +
      "Lioova composed the music.",
  },
  {
    title: "Halar Staoff",
    text: "Halar Staoff, born in 1900 in Yorseville, is a Greek painter. He received the Lenki Prize in 1978. He married " +
      "Braina Jorberg. He is the son of Maian Lenwood and Selis Fiodaworth.",
  },
  {
    title: "The Blue Rains",
    text: "The Blue Rains are a blues band. They formed in 2006 in Garsiham. Haron Torford is the lead singer.",
  },
  {
    title: "Garsiham",
    text: "Garsiham is a city in Norway. The river Pelri flows through it. The mayor is Jorgoia Lorkov. It has a population " +
      "of 127,315.",
  },
  {
    title: "Elwell Industries",
    text: "Elwell Industries is a publishing company. It was founded in 1960 by Gremiar Lorkadahl. Its headquarters are in " +
      "Verfield.",
  },
  {
    title: "Baor Zaheim",
    text: "Baor Zaheim, born in 1909 in Valford, is a Norwegian engineer. He received the Helvi Medal in 2019. He is " +
      "married to Fenina Baoff. He is the son of Chebinar Lenman and Pela Nelworth.",
  },
  {
    title: "Valford",
    text: "Valford is a city in Norway on the river Vordin. It has a population of 697,775. Its mayor is Haltao Boer.",
  },
  {
    title: "The Empire and the Sky",
    text: "The Empire and the Sky is a 2005 Chinese adventure film directed by Gardrael Seric and starring Beis Wenford. " +
      "Kelo Jorlaova composed the music.",
  },
  {
    title: "Bevo's Wall",
    text: "Bevo's Wall is a science fiction novel written by Maria Wenvale. It was published in 1934. The first edition was " +
      "printed by Marviberg Press.",
  },
];

/** The last two have answers that follow the order of the cards. */
export const sampleQuestions = [
  { name: "A director's award", question: "Which award did the director of the film The Northern Compass receive?" },
  { name: "A band's mayor", question: "Who is the mayor of the city where The Blue Rains were formed?" },
  { name: "A composer's rector", question: "Who is the rector of the university where Gremiar Lorkadahl studied?" },
  { name: "First document", question: "What is the title of the first document?" },
  { name: "Last document", question: "What is the title of the last document?" },
];
