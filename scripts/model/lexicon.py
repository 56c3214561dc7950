"""Word lists of the story grammar. Nothing here but words."""

GIRLS = (
    "Anna Mia Lily Rose Emma Clara Nora Ruby Ella Lucy Alice Grace Ivy Molly Sara Jane Kate Daisy "
    "Hazel Amy Eva Lena Tina Wendy Maya Julia Sophie Olive Fiona Bella"
).split()
BOYS = (
    "Tom Ben Max Sam Leo Jack Finn Hugo Oscar Peter Paul Adam Noah Henry George Luke Mark Toby "
    "Felix Simon David Eric Frank Will Owen Ralph Victor Otto Ned Carl"
).split()
ELDER_WOMEN = ["Grandma", "Aunt May", "Mrs. Hill", "Mrs. Brook", "Miss Green", "the old queen", "the teacher"]
ELDER_MEN = ["Grandpa", "Uncle Joe", "Mr. Stone", "Mr. Field", "the old king", "the baker", "the miller"]

COLOURS = "red blue green yellow white black brown orange purple pink silver golden".split()
OBJECTS = (
    "ball kite drum hat lamp cup box book basket bell boat broom brush bucket button cake candle chair "
    "clock coat coin comb doll feather flag flute fork glove hammer horn jar jug kettle key knife ladder "
    "letter map mask mirror needle net pan pebble pen pillow plate pot purse ribbon ring rope saddle scarf "
    "shell shoe spoon stone sword towel toy trumpet whistle wheel blanket"
).split()
LOCATIONS = (
    "in the garden|under the old bridge|behind the barn|on the kitchen table|near the river|in the attic|"
    "under the bed|beside the well|on the roof|in the cellar|behind the church|in the hollow tree|"
    "on the window sill|under the stairs|next to the mill|in the boat house|at the market|in the school yard|"
    "by the lake|on the top shelf|inside the cave|under the big rock|in the hay|behind the curtain|"
    "by the fire|in the cupboard|on the hill|in the meadow|at the harbour|near the gate|in the tent|"
    "under the apple tree|on the porch|in the stable|behind the sofa|in the forest|on the beach|"
    "in the library|at the station|inside the castle|in the drawer|on the wagon|under the carpet|"
    "by the fountain|in the tower|at the bakery|in the swamp|on the island"
).split("|")
FOODS = (
    "apples pears plums cherries grapes bread cheese soup honey noodles rice beans carrots pancakes waffles "
    "cookies pie jam nuts eggs fish potatoes tomatoes pumpkins melons berries lemons corn peas mushrooms "
    "butter yogurt pudding salad dumplings peaches figs onions muffins toast"
).split()
PETS = "cat dog rabbit pony parrot hamster turtle goat duck mouse hen lamb".split()
PET_NAMES = (
    "Pip Biscuit Shadow Pepper Ginger Snowy Coco Tiger Patch Bubbles Rusty Ziggy Misty Cookie Sunny Dusty "
    "Marble Socks Whiskers Noodle Pearl Rocket Smoky Storm Bean Clover Waffle Mango Button Poppy Dash "
    "Maple Fern Cloud Sparky Berry Muffin Sky Jelly Echo"
).split()
JOBS = (
    "baker|farmer|teacher|doctor|sailor|painter|singer|dancer|pilot|cook|tailor|carpenter|gardener|builder|"
    "writer|nurse|judge|hunter|weaver|potter|fisherman|shepherd|blacksmith|musician|king's guard|clown|"
    "librarian|captain|miner|beekeeper"
).split("|")
COUNTED = (
    "stars sheep birds boats trees windows flowers clouds horses frogs bees butterflies leaves steps doors "
    "stones wagons geese fishes lanterns"
).split()
NUMBERS = (
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty "
    "sixty seventy eighty ninety seven eight nine six five four three"
).split()
VEHICLES = "boat train wagon bus bicycle sled horse ship balloon tram cart canoe donkey raft".split()
TOWNS = (
    "Oakton Riverford Millbrook Stonebridge Greenfield Lakeside Sandport Hillcrest Ashwood Northgate "
    "Foxdale Windmere Brightwater Redcliff Elmhurst"
).split()

WILD = "fox owl bear squirrel hedgehog deer badger swan frog raven otter mole".split()
PLACES = (
    "the forest|the village|the park|the meadow|the seaside|the valley|the town|the farm|the mountain|"
    "the river bank|the orchard|the castle"
).split("|")
TRAITS = "brave kind clever shy curious gentle cheerful quiet stubborn honest patient careful lazy proud".split()
SIZES = "little small big old new shiny heavy pretty".split()
WEATHERS = (
    "The sun was shining|It was raining|The wind was cold|The sky was grey|Snow was falling|"
    "It was a warm day|There was fog everywhere|The air was fresh|Birds were singing|It was almost dark"
).split("|")
LESSONS = (
    "it is good to share|friends help each other|it is better to tell the truth|being patient is worth it|"
    "small things can matter a lot|everybody makes mistakes|it is fine to ask for help|"
    "being kind costs nothing|you should never give up|listening is a gift|practice makes things easier|"
    "a promise must be kept"
).split("|")
